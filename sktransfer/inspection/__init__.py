"""Pictures of searches and archives, in the manner of scikit-learn's Displays.

matplotlib is imported when something is plotted: ``pip install 'sktransfer[plot]'``.
"""

from sktransfer.inspection._importance import ImportanceDisplay
from sktransfer.inspection._search_history import SearchHistoryDisplay
from sktransfer.inspection._surface import SurfaceDisplay

__all__ = ["ImportanceDisplay", "SearchHistoryDisplay", "SurfaceDisplay"]
