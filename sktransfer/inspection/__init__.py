"""Pictures of searches and archives, in the manner of scikit-learn's Displays.

matplotlib is imported when something is plotted: ``pip install 'sktransfer[plot]'``.
"""

from sktransfer.inspection._calibration import CalibrationDisplay
from sktransfer.inspection._importance import ImportanceDisplay
from sktransfer.inspection._parallel_coordinates import ParallelCoordinatesDisplay
from sktransfer.inspection._pareto import ParetoDisplay
from sktransfer.inspection._report import archive_report
from sktransfer.inspection._search_history import SearchHistoryDisplay
from sktransfer.inspection._surface import SurfaceDisplay
from sktransfer.inspection._task_map import TaskMapDisplay
from sktransfer.inspection._task_similarity import TaskSimilarityDisplay

__all__ = [
    "CalibrationDisplay",
    "ImportanceDisplay",
    "ParallelCoordinatesDisplay",
    "ParetoDisplay",
    "SearchHistoryDisplay",
    "SurfaceDisplay",
    "TaskMapDisplay",
    "TaskSimilarityDisplay",
    "archive_report",
]
