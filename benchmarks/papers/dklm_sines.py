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


def shown_seed(rows: Rows) -> int:
    """Return the seed at the upper quintile of the difference of the first sine's densities."""
    found = {(r["method"], r["seed"]): r["density"][0] for r in rows if r["part"] == BELIEF}
    seeds = [seed for method, seed in found if method == "dklm" and ("fsbo", seed) in found]
    gains = [found["fsbo", seed] - found["dklm", seed] for seed in seeds]
    return seeds[int(np.argsort(gains)[(4 * len(gains)) // 5 - 1])]


def figure(rows: Rows, file: Path) -> None:
    """Draw the bottom row of Figure 1 for one seed, and the densities of all seeds."""
    x, seed = sines.GRID[:, 0], shown_seed(rows)
    with panels(file, 4, width=3.8) as axes:
        for axis, method in zip(axes[:2], ("dklm", "fsbo"), strict=True):
            row = next(
                r for r in rows if (r["part"], r["method"], r["seed"]) == (BELIEF, method, seed)
            )
            draw_posterior(axis, row, x)
            axis.set(title=f"{method}, seed {seed}", xlabel="x, scaled to [0, 1]")
        axes[0].sharey(axes[1])
        axes[1].legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=5)
        both = [by_seed(rows, method, "density") for method in ("dklm", "fsbo")]
        for ours, theirs in zip(*both, strict=True):
            axes[2].plot([0, 1], [ours, theirs], "o-", color="grey", ms=4, lw=0.8)
        axes[2].plot([0, 1], [each.mean() for each in both], "s-", color="black", label="mean")
        axes[2].set_xticks([0, 1], ["dklm", "fsbo"])
        axes[2].set(xlim=(-0.4, 1.4), ylabel="negative log density", title="each seed, 10 sines")
        axes[2].legend(fontsize=7, loc="upper left")  # below it `dklm` has the lower densities
        row = next(r for r in rows if r["part"] == AMPLITUDE)
        axes[3].plot(row["amplitude"], row["feature"], "o", ms=4)
        title = f"seed 0, r = {row['correlation']:.2f}"
        axes[3].set(xlabel="amplitude", ylabel="landmark feature", title=title)


def draw_posterior(axis: Any, row: dict[str, Any], x: np.ndarray) -> None:
    """Draw a sine, its observed points, and the posterior."""
    mean, std, n = np.array(row["mean"]), np.array(row["std"]), sines.N_RANDOM
    low, high = mean - INSIDE * std, mean + INSIDE * std
    axis.fill_between(x, low, high, alpha=0.25, label="± 1.96 std")
    axis.plot(x, mean, label="mean")
    axis.plot(x, row["curve"], "--", color="black", lw=1, label="sine")
    axis.plot(row["x"][:n], row["y"][:n], "o", color="black", label="random")
    axis.plot(row["x"][n:], row["y"][n:], "*", color="red", ms=9, label="chosen")


EXPERIMENT = Experiment(
    title="DKLM, section 5: sines (Jomaa et al. 2021)",
    about=(
        f"There are {sines.N_TASKS} past tasks a sin(x + b), a ~ U(0.1, 5), b ~ U(0, 2π), with "
        f"{sines.N_TRIALS} points each. A new sine is observed at {sines.N_RANDOM} random points, "
        f"equal for both methods, and at {sines.N_CHOSEN} points chosen by expected improvement. "
        f"Each seed has {N_SINES} new sines. `fsbo` is `dklm` without the landmark features. Both "
        "have no guard. The paper shows one sine and states that the variance of DKLM is better "
        "than that of FSBO. For sines a sin(x) it states that a single landmark feature "
        "correlates strongly with a. It has no numbers. The figure shows the sine whose difference "
        "of the densities is the third largest of the seeds, the mean density of each seed, and "
        "the landmark features of 50 sines. Bands are 1.96 standard deviations of the posterior."
    ),
    seeds=10,
    fields=("part", "method", "seed"),
    keys=keys,
    run=run,
    tables=tables,
    figure=figure,
)
