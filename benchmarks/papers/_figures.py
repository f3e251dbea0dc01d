"""Parts of the figures: panels, curves over the trials, diagrams of critical differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers._compare import not_apart


@contextmanager
def panels(file: Path, n: int, width: float = 4.5, height: float = 3.6) -> Iterator[Any]:
    """Yield the axes of n panels in a row, and save them to a file at the end."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, n, figsize=(width * n, height), squeeze=False, layout="constrained"
    )
    yield axes[0]
    figure.savefig(file, dpi=120)
    plt.close(figure)


def colors(names: Any) -> dict[str, Any]:
    """Map each name to a color, the same in all panels of a figure; 20 before they repeat."""
    import matplotlib

    palette = matplotlib.colormaps["tab10" if len(list(names)) <= 10 else "tab20"].colors
    return {name: palette[i % len(palette)] for i, name in enumerate(names)}


def curves(axis: Any, values: Mapping[str, np.ndarray], **labels: str) -> None:
    """Plot the mean over the cells with a band of one standard error, one line per method."""
    for name, color in colors(values).items():
        cells = values[name]
        trials, mean = np.arange(1, cells.shape[1] + 1), cells.mean(axis=0)
        axis.plot(trials, mean, label=name, color=color, lw=1.4)
        if len(cells) > 1:
            error = cells.std(axis=0, ddof=1) / np.sqrt(len(cells))
            axis.fill_between(trials, mean - error, mean + error, color=color, alpha=0.12, lw=0)
    axis.set(**{"xlabel": "trials", **labels})
    axis.xaxis.get_major_locator().set_params(integer=True)


def regret_curves(axis: Any, best: Mapping[str, np.ndarray], ylabel: str) -> None:
    """Plot how far each method is below the best last score in a cell, on a logarithmic scale.

    Curves near the best score would lie on each other otherwise.
    """
    top = np.max([values[:, -1] for values in best.values()], axis=0)[:, None]
    regret = {name: top - values for name, values in best.items()}
    curves(axis, regret, ylabel=ylabel)
    log_scale(axis, regret)


def log_scale(axis: Any, values: Mapping[str, np.ndarray]) -> None:
    """Make the axis logarithmic; bands that reach 0 are cut off."""
    from matplotlib.ticker import LogLocator

    means = [cells.mean(axis=0) for cells in values.values()]
    lowest = min(mean[mean > 0].min(initial=1.0) for mean in means)
    axis.set(yscale="log", ylim=(lowest / 2, None))
    low, high = axis.get_ylim()
    axis.yaxis.set_major_formatter("{x:g}")
    if high < 100 * low:  # a single power of ten would be the only label
        axis.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        axis.yaxis.set_minor_formatter("{x:g}")


def legend_beside(axis: Any, entries: tuple[list, list] | None = None) -> None:
    """Place the legend to the right of the panel; `entries` are those of another panel."""
    place = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)}
    axis.legend(*(entries or ()), fontsize=7, frameon=False, **place)


def rank_diagram(
    axis: Any, mean_ranks: Mapping[str, float], difference: float, title: str = ""
) -> None:
    """Plot mean ranks, best on top; a bar connects methods within the critical difference."""
    order = sorted(mean_ranks, key=lambda method: mean_ranks[method])
    for place, method in enumerate(order):
        axis.plot(mean_ranks[method], place, "o", color="black", ms=4)
    groups = not_apart(mean_ranks, difference)
    low, high = mean_ranks[order[0]], mean_ranks[order[-1]]
    for number, group in enumerate(groups):
        places = [order.index(method) for method in group]
        # The bars are drawn on the right, from the first to the last method of a group.
        x = high + (0.06 + 0.05 * number) * max(high - low, 1)
        axis.plot([x, x], [min(places) - 0.2, max(places) + 0.2], color="grey", lw=2)
    axis.plot([low, low + difference], [-1, -1], color="black", lw=2)
    axis.text(low, -1.25, f"critical difference {difference:.2f}", fontsize=7, va="bottom")
    axis.set_yticks(range(len(order)), order, fontsize=7)
    axis.set_ylim(len(order) - 0.5, -2.2)
    axis.set(xlabel="mean rank", title=title)
