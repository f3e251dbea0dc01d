"""Search spaces: parsed from what scikit-learn's searches accept, encoded in [0, 1]."""

from collections.abc import Mapping, Sequence
from typing import Any

from sktransfer.space._estimator_tree import Estimator, is_scaled
from sktransfer.space._space import Space

SpaceLike = Mapping[str, Any] | Sequence[Mapping[str, Any]] | Space
"""What `Space.parse` takes."""

__all__ = ["Estimator", "Space", "SpaceLike", "is_scaled"]
