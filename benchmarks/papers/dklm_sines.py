"""Jomaa et al. 2021, section 5, Figure 1: sines, with and without landmark features."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import sines
from benchmarks.papers._experiment import Experiment, Rows, interval, markdown
from benchmarks.papers._figures import panels

N_SINES, N_AMPLITUDES = 10, 50
BELIEF, AMPLITUDE = "belief", "amplitude"
INSIDE = 1.96  # standard deviations: 95 % of a normal distribution


def keys(seeds: int, quick: bool, folder: Path) -> list[tuple]:
    both = [(BELIEF, method, seed) for seed in range(seeds) for method in ("dklm", "fsbo")]
    return both + [(AMPLITUDE, "dklm", seed) for seed in range(seeds)]


def run(part: str, method: str, seed: int, folder: Path) -> dict:
    begun = time.perf_counter()
    row = beliefs(method, seed) if part == BELIEF else amplitudes(seed)
    return row | {"wall": round(time.perf_counter() - begun, 2)}


def beliefs(method: str, seed: int) -> dict[str, Any]:
    """Measure density, coverage and error of posteriors after 5 random and 3 chosen points.

    The first sine is stored completely, for the figure.
    """
    surrogate = sines.trained(method, seed)
    row: dict[str, Any] = {"density": [], "inside": [], "error": []}
    for k, sine in enumerate(sines.draw_sines(N_SINES, np.random.default_rng([seed, 1]))):
        task, posterior = sines.explore(surrogate, sine, np.random.default_rng([seed, 2, k]))
        mean, std = posterior.predict(sines.GRID)
        curve = sine(sines.GRID)
        row["density"].append(sines.negative_log_density(posterior, sine))
        row["inside"].append(float(np.mean(abs(curve - mean) <= INSIDE * std)))
        row["error"].append(float(np.sqrt(np.mean((curve - mean) ** 2))))
        if k == 0:
            shown = {"mean": mean, "std": std, "curve": curve, "x": task.theta[:, 0], "y": task.z}
            row |= {name: values.round(4).tolist() for name, values in shown.items()}
    return row


def amplitudes(seed: int) -> dict[str, Any]:
    """Measure the single landmark feature of sines without a phase, and their amplitudes."""
    surrogate = sines.trained_on_amplitudes(seed)
    feature, amplitude = sines.feature_and_amplitude(surrogate, seed, N_AMPLITUDES)
    return {
        "feature": feature.tolist(),
        "amplitude": amplitude.tolist(),
        "correlation": float(np.corrcoef(feature, amplitude)[0, 1]),
    }


# -- tables and figure -----------------------------------------------------------------------------


def by_seed(rows: Rows, method: str, value: str) -> np.ndarray:
    """Return the mean over the sines of each seed."""
    return np.array(
        [np.mean(r[value]) for r in rows if r["part"] == BELIEF and r["method"] == method]
    )


def tables(rows: Rows) -> list[str]:
    measures = {
        "negative log density of the curve": "density",
        "share of the curve within ± 1.96 std": "inside",
        "root mean squared error": "error",
    }
    both = {
        value: [by_seed(rows, method, value) for method in ("dklm", "fsbo")]
        for value in measures.values()
    }
    body = [
        [
            name,
            interval(both[value][0]),
            interval(both[value][1]),
            interval(both[value][0] - both[value][1]),
        ]
        for name, value in measures.items()
    ]
    lines = ["## Posterior after 5 + 3 points, mean over the seeds with a 95 % interval", ""]
    lines += markdown(["", "dklm", "fsbo", "dklm − fsbo"], body)
    density = both["density"]
    better = int((density[0] < density[1]).sum())
    found = np.array([abs(row["correlation"]) for row in rows if row["part"] == AMPLITUDE])
    return [
        *lines,
        f"The density is better with landmarks on {better} of {len(density[0])} seeds.",
        "",
        "## Correlation of the landmark feature with the amplitude",
        "",
        f"Absolute value, mean of {len(found)} seeds: {interval(found)}, lowest "
        f"{found.min():.3f}. The sign of a learned feature is arbitrary.",
        "",
    ]


def figure(rows: Rows, file: Path) -> None:
    """Draw the bottom row of Figure 1, for the first seed."""
    x = sines.GRID[:, 0]
    with panels(file, 3) as axes:
        for axis, method in zip(axes[:2], ("dklm", "fsbo"), strict=True):
            row = next(r for r in rows if r["part"] == BELIEF and r["method"] == method)
            mean, std = np.array(row["mean"]), np.array(row["std"])
            axis.fill_between(
                x, mean - INSIDE * std, mean + INSIDE * std, alpha=0.25, label="± 1.96 std"
            )
            axis.plot(x, mean, label="mean")
            axis.plot(x, row["curve"], "--", color="black", lw=1, label="sine")
            axis.plot(
                row["x"][: sines.N_RANDOM],
                row["y"][: sines.N_RANDOM],
                "o",
                color="black",
                label="random",
            )
            axis.plot(
                row["x"][sines.N_RANDOM :],
                row["y"][sines.N_RANDOM :],
                "*",
                color="red",
                ms=9,
                label="chosen",
            )
            axis.set(title=method, xlabel="x, scaled to [0, 1]")
        axes[0].sharey(axes[1])
        axes[0].legend(fontsize=7, loc="upper right")
        row = next(r for r in rows if r["part"] == AMPLITUDE)
        axes[2].plot(row["amplitude"], row["feature"], "o", ms=4)
        axes[2].set(
            xlabel="amplitude", ylabel="landmark feature", title=f"r = {row['correlation']:.2f}"
        )


EXPERIMENT = Experiment(
    title="DKLM, section 5: sines (Jomaa et al. 2021)",
    about=(
        f"There are {sines.N_TASKS} past tasks a sin(x + b), a ~ U(0.1, 5), b ~ U(0, 2π), with "
        f"{sines.N_TRIALS} points each. A new sine is observed at {sines.N_RANDOM} random points, "
        f"equal for both methods, and at {sines.N_CHOSEN} points chosen by expected improvement. "
        f"Each seed has {N_SINES} new sines. `fsbo` is `dklm` without the landmark features. Both "
        "have no guard. The paper shows one sine and states that the variance of DKLM is better "
        "than that of FSBO. For sines a sin(x) it states that a single landmark feature "
        "correlates strongly with a. It has no numbers."
    ),
    seeds=10,
    fields=("part", "method", "seed"),
    keys=keys,
    run=run,
    tables=tables,
    figure=figure,
)
