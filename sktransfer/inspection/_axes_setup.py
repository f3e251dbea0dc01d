"""What all Displays have in common: the lazy import of matplotlib, axes, colors of origins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# A palette that people with a color vision deficiency can tell apart (Okabe and Ito, 2008).
BLUE, ORANGE, GREEN, PINK, SKY, GRAY = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#767676",
)
ORIGIN_COLORS = {
    "past task": ORANGE,
    "model": BLUE,
    "space-filling": GREEN,
    "random": GRAY,
    "grid": SKY,
}
"""Color of each origin, in the order of the legend. Other origins are pink."""

COLORMAP = "viridis"


def import_pyplot(caller: str) -> Any:
    """Import matplotlib, or raise scikit-learn's error if it is not installed.

    Parameters
    ----------
    caller : str
        What needs it, for the message.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{caller} requires matplotlib. You can install matplotlib with "
            "`pip install matplotlib`."
        ) from error
    return plt


def open_axes(
    ax: Axes | None, caller: str, size: tuple[float, float] = (6.4, 4.2)
) -> tuple[Figure, Axes]:
    """The given axes, or new ones in a new figure, and their figure."""
    plt = import_pyplot(caller)
    if ax is None:
        _, ax = plt.subplots(figsize=size, layout="constrained")
    assert ax is not None
    figure: Any = ax.figure
    return figure, ax


def write_sentence(ax: Axes, sentence: str) -> None:
    """Show a sentence in place of a picture."""
    ax.set_axis_off()
    ax.text(
        0.5, 0.5, sentence, ha="center", va="center", wrap=True, transform=ax.transAxes, color=GRAY
    )


def origin_groups(origins: Sequence[str]) -> list[str]:
    """The group of each origin: "past task" for the settings of all past tasks.

    >>> origin_groups(["model", "task 2026-a", "task 2026-b"])
    ['model', 'past task', 'past task']
    """
    return ["past task" if str(origin).startswith("task ") else str(origin) for origin in origins]


def best_so_far(scores: np.ndarray) -> np.ndarray:
    """The best score after each trial; NaN before the first success; (n,) -> (n,).

    >>> best_so_far(np.array([np.nan, 0.5, 0.4, 0.7])).tolist()
    [nan, 0.5, 0.5, 0.7]
    """
    return np.fmax.accumulate(np.asarray(scores, dtype=float))


def score_limits(scores: np.ndarray) -> tuple[float, float]:
    """The range of scores to show, so that a few very bad ones do not hide the rest.

    >>> score_limits(np.array([-400.0, 0.5, 0.6, 0.7, np.nan]))
    (-0.5, 0.7)
    >>> score_limits(np.array([0.5, 0.5 + 1e-16]))
    (0.495, 0.505)
    """
    finite = scores[np.isfinite(scores)]
    if not len(finite):
        return 0.0, 1.0
    low, middle, high = finite.min(), np.median(finite), finite.max()
    low = max(low, high - 8 * (high - middle)) if high > middle else low
    if high - low <= 1e-9 * max(abs(low), abs(high)):  # equal up to rounding
        low, high = low - 0.01 * (abs(low) or 1.0), high + 0.01 * (abs(high) or 1.0)
    return round(float(low), 12), round(float(high), 12)
