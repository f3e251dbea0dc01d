"""Tables of `benchmarks.protein`: best accuracies, ranks, and paired differences."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from benchmarks.papers._experiment import half_width

REFERENCES = ["distGP", "dist-gp", "dist-gp, pairs"]
"""The paper's form, the same with additions, and that with the package's encoder."""
AT = [1, 2, 3, 5, 10]  # reported numbers of trials
COMPARED = [1, 3, 5]  # numbers of trials for the comparison with the references


def table(first: str, columns: list[str], rows: dict[str, list[str]]) -> list[str]:
    """Return the lines of a table."""
    lines = [f"| {first} | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    return [
        *lines,
        *(f"| {name} | " + " | ".join(cells) + " |" for name, cells in rows.items()),
        "",
    ]


def estimator_section(best: dict[str, np.ndarray]) -> list[str]:
    """Return the tables of one estimator.

    Parameters
    ----------
    best : dict of method to array (7, seeds, trials)
        Best accuracy so far in percent.
    """
    at = np.array(AT) - 1
    columns = [f"k = {k}" for k in AT]
    means = {m: [f"{v:.2f}" for v in b[..., at].mean(axis=(0, 1))] for m, b in best.items()}
    lines = [
        "Mean best accuracy after k trials, in percent:",
        "",
        *table("method", columns, means),
    ]
    ranks = rankdata([-b[..., at].round(9) for b in best.values()], axis=0).mean(axis=(1, 2))
    ranked = {m: [f"{v:.2f}" for v in row] for m, row in zip(best, ranks, strict=True)}
    lines += [
        f"Mean rank among the {len(best)} methods, 1 is best, ties averaged:",
        "",
        *table("method", columns, ranked),
    ]
    for reference in REFERENCES:
        if reference in best and len(best) > 1:
            lines += comparison(best, reference)
    return lines


def comparison(best: dict[str, np.ndarray], reference: str) -> list[str]:
    """Return the differences of all methods from a reference, after some trials and on average."""
    compared, differences, level = np.array(COMPARED) - 1, {}, {}
    for method, values in best.items():
        if method != reference:
            apart = values - best[reference]
            d = np.concatenate([apart[..., compared], apart.mean(axis=-1, keepdims=True)], axis=-1)
            cells = d.reshape(-1, d.shape[-1])
            half = half_width(cells)
            differences[method] = [
                f"{mean:+.2f} ± {h:.2f}" for mean, h in zip(cells.mean(axis=0), half, strict=True)
            ]
            level[method] = ", ".join(map(str, (d.mean(axis=1) <= 1e-9).sum(axis=0)))
    return [
        f"Difference from {reference} in the same cell, in percentage points, with a 95 % "
        f"interval. Negative values mean that {reference} is better.",
        "",
        *table("method", [*(f"k = {k}" for k in COMPARED), "mean over the trials"], differences),
        f"Number of the {len(best[reference])} proteins in which the mean of {reference} over the "
        f"seeds is at least as high as that of each method, after {', '.join(map(str, COMPARED))} "
        f"trials and on average: {'; '.join(f'{m} {n}' for m, n in level.items())}.",
        "",
    ]
