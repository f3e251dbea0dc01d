"""Configurations that are proposed for evaluation or suggested without one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Proposal:
    """A configuration to evaluate.

    Parameters
    ----------
    params : dict
    origin : str
        Where it comes from: "initial", "grid", "space-filling", "random", "model", or "task" and
        the id of a past task.
    mean, std : float
        Predicted score and its standard deviation; NaN without a model.
    """

    params: dict[str, Any]
    origin: str
    mean: float = math.nan
    std: float = math.nan

    @property
    def is_from_past(self) -> bool:
        """Whether it was learned from past tasks, given that the target has no trials yet."""
        return self.origin.startswith(("model", "task"))


@dataclass(frozen=True)
class Suggestion:
    """A configuration for data that nothing was evaluated on.

    Parameters
    ----------
    params : dict
    mean, std : float
        Predicted score and its standard deviation; NaN where no model predicts. Errors in the units
        of the target, such as a mean absolute error, are in the units of the past data sets.
    sources : tuple of (str, float)
        Ids of the past tasks it is based on and their similarity, most similar first.
    note : str
        What it is based on, in words.
    names : tuple of str
        Names of the `sources`; empty texts where they have none.

    Examples
    --------
    >>> Suggestion({"C": 1.0}, 0.9, 0.02, (("first", 0.8),), "from one similar past task")
    Suggestion({'C': 1.0}, predicted 0.9 ± 0.02, from one similar past task)
    """

    params: dict[str, Any]
    mean: float
    std: float
    sources: tuple[tuple[str, float], ...]
    note: str
    names: tuple[str, ...] = ()

    def __repr__(self) -> str:
        predicted = (
            f", predicted {self.mean:.4g} ± {self.std:.2g}" if self.mean == self.mean else ""
        )
        return f"Suggestion({self.params!r}{predicted}, {self.note})"
