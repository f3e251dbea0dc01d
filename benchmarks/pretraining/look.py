"""A first look at the evaluations: are score surfaces predictable from the data?

    OMP_NUM_THREADS=1 python -m benchmarks.pretraining.look      # docs/results/pretraining.md

For each variant of an estimator, extra trees predict the score of a configuration on a data set
from the configuration and some features of the data set. Scores are standardized within each data
set, so that only the shape of the surface counts. Data sets are split in four by family: no family,
and no synthetic table, is on both sides.

Two measures are averaged over the data sets that were not trained on. The unexplained share is the
squared error relative to the variance of the scores: 1 is as good as the mean. The regret is that
of the configuration with the best prediction among those of the data set: 0 best, 1 the median.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.model_selection import GroupKFold

from benchmarks.pretraining.configurations import draw_configurations
from benchmarks.pretraining.evaluate import BOUNDED, variants_of
from benchmarks.pretraining.features import encode_configurations
from benchmarks.pretraining.generator import kind_of
from benchmarks.pretraining.scores import METRICS
from benchmarks.pretraining.store import (
    CAPPED,
    FAILED,
    FOLDER,
    decode_scores,
    decode_seconds,
    load_group,
)
from sktransfer.dataset._response_curves import relative_curves

REPORT = Path(__file__).parents[2] / "docs" / "results" / "pretraining.md"
MARKS = ("<!-- tables: begin -->", "<!-- tables: end -->")
INPUTS = {
    "nothing": (),
    "sizes": ("sizes", "scales"),
    "handcrafted": ("sizes", "scales", "meta_features"),
    "sketch": ("sizes", "scales", "sketch"),
    "response curves": ("sizes", "scales", "response_curves"),
    "with relative": ("sizes", "scales", "response_curves", "relative_curves"),
    "all": ("sizes", "scales", "meta_features", "sketch", "response_curves", "relative_curves"),
}
N_TREES, N_SPLITS = 30, 4
MIN_STD = 5e-3  # a surface that varies less is flat: nothing is to be gained
MAX_LOSS = 3.0  # standard deviations below the mean at which scores are clipped


@dataclass(frozen=True)
class Surfaces:
    """The scores of one variant on many data sets.

    Parameters
    ----------
    configurations : ndarray of shape (n, c, d)
    scores : ndarray of shape (n, c)
        Of one metric; failures have the worst score of their data set.
    features : dict of str to ndarray of shape (n, f)
    families : ndarray of str, shape (n,)
    is_synthetic : ndarray of bool, shape (n,)
    """

    configurations: np.ndarray
    scores: np.ndarray
    features: dict[str, np.ndarray]
    families: np.ndarray
    is_synthetic: np.ndarray

    def standardized(self) -> np.ndarray:
        """Scores with mean 0 and variance 1 in each data set, low outliers clipped first."""
        low = np.quantile(self.scores, 0.25, axis=1, keepdims=True)
        high = np.quantile(self.scores, 0.75, axis=1, keepdims=True)
        clipped = np.maximum(self.scores, low - MAX_LOSS * np.maximum(high - low, 1e-3))
        centered = clipped - clipped.mean(axis=1, keepdims=True)
        return centered / centered.std(axis=1, keepdims=True)


# -- loading ---------------------------------------------------------------------------------------


def load_surfaces(task: str, variant: str, folder: Path, metric: int = 0) -> Surfaces | None:
    """Load one variant with the profiles of its data sets; None without any."""
    name, spec, scaled = variants_of(task)[variant]
    found, profiles = load_group(folder, spec.group, task), load_group(folder, "profiles", task)
    both = np.intersect1d(found["numbers"], profiles["numbers"])
    if f"{variant}.scores" not in found or not len(both):
        return None
    codes = found[f"{variant}.scores"][np.isin(found["numbers"], both)]
    keep = np.isin(profiles["numbers"], both)
    features = read_features({name: values[keep] for name, values in profiles.items()})
    scores = decode_scores(codes, BOUNDED[task])[:, :, metric]
    has_enough = np.isfinite(scores).sum(axis=1) >= scores.shape[1] // 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = np.where(np.isfinite(scores), scores, np.nanmin(scores, axis=1, keepdims=True))
    use = has_enough & (np.nan_to_num(scores.std(axis=1)) > MIN_STD)
    columns = np.exp(features["sizes"][:, 1]).round().astype(int)
    # The mean variance of bare cells is not stored: that of the typical column is used.
    log_std = features["scales"][:, 1]
    variance = np.ones(len(both)) if scaled else 10.0 ** (2 * log_std)
    encoded = np.array(
        [
            encode_configurations(spec, draw_configurations(name, spec, int(number)), p, v)
            for number, p, v in zip(both, columns, variance, strict=True)
        ]
    )
    return Surfaces(
        encoded[use],
        scores[use],
        {part: values[use] for part, values in features.items()},
        profiles["family"][keep][use],
        np.array([kind_of(int(number)).origin == "synthetic" for number in both])[use],
    )


def read_features(profiles: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Features of the data sets by part, each of shape (n, f); -2 where there is none."""
    parts = ("sizes", "scales", "meta_features", "sketch", "response_curves")
    found = {part: profiles[part].astype(float) for part in parts}
    names = str(profiles["response_curves.names"][0]).split()
    relative = [
        relative_curves(dict(zip(names, row, strict=True)))
        for row in np.nan_to_num(found["response_curves"], nan=-1.0)
    ]
    found["relative_curves"] = np.array([[row[name] for name in names] for row in relative])
    return {part: np.nan_to_num(values, nan=-2.0) for part, values in found.items()}


# -- measures --------------------------------------------------------------------------------------


def predict_surfaces(surfaces: Surfaces, inputs: tuple[str, ...]) -> np.ndarray:
    """Predict the standardized scores of data sets that are not trained on; of shape (n, c)."""
    z = surfaces.standardized()
    n, c, d = surfaces.configurations.shape
    known = [surfaces.features[part] for part in inputs]
    data = np.column_stack(known) if known else np.zeros((n, 0))
    X = np.concatenate(
        [surfaces.configurations, np.repeat(data[:, None, :], c, axis=1)], axis=2
    ).astype(np.float32)
    predicted = np.zeros_like(z)
    for train, test in split_by_family(surfaces):
        model = ExtraTreesRegressor(
            N_TREES, min_samples_leaf=3, max_features=max(0.35, d / X.shape[2] / 2), random_state=0
        )
        model.fit(X[train].reshape(-1, X.shape[2]), z[train].ravel())
        predicted[test] = model.predict(X[test].reshape(-1, X.shape[2])).reshape(-1, c)
    return predicted


def unexplained(surfaces: Surfaces, predicted: np.ndarray) -> np.ndarray:
    """Unexplained share of each data set."""
    centered = predicted - predicted.mean(axis=1, keepdims=True)
    return np.mean((surfaces.standardized() - centered) ** 2, axis=1)


def regret(surfaces: Surfaces, predicted: np.ndarray) -> np.ndarray:
    """Normalized regret of the configuration with the best prediction, at most 3."""
    scores = surfaces.scores
    best, median = scores.max(axis=1), np.median(scores, axis=1)
    picked = np.take_along_axis(scores, predicted.argmax(axis=1)[:, None], axis=1)[:, 0]
    return np.minimum((best - picked) / np.maximum(best - median, 1e-6), 3.0)


def interval(values: np.ndarray, families: np.ndarray) -> tuple[float, float]:
    """Mean over data sets, and half of its 95 % interval over families."""
    groups, codes = np.unique(families, return_inverse=True)
    sums = np.bincount(codes, weights=values - values.mean())
    error = np.sqrt(np.sum(sums**2) * len(groups) / max(1, len(groups) - 1)) / len(values)
    return float(values.mean()), float(1.96 * error)


def split_by_family(surfaces: Surfaces) -> list[tuple[np.ndarray, np.ndarray]]:
    """Folds with each family on one side."""
    splitter = GroupKFold(N_SPLITS, shuffle=True, random_state=0)
    return list(splitter.split(surfaces.scores, groups=surfaces.families))


# -- report ----------------------------------------------------------------------------------------


def describe_store(folder: Path) -> list[str]:
    """Table of the variants: data sets, failures, seconds, and spread of the first metric."""
    heads = "variant|data sets|fits|capped|failed|ms per fit|flat|best score|spread"
    lines = [f"| {heads.replace('|', ' | ')} |", "|---" * (heads.count("|") + 1) + "|"]
    for task in METRICS:
        for variant, (_, spec, _) in variants_of(task).items():
            found = load_group(folder, spec.group, task)
            if f"{variant}.scores" not in found:
                continue
            codes = found[f"{variant}.scores"]
            scores = decode_scores(codes, BOUNDED[task])[:, :, 0] + (task == "regression")
            seconds = decode_seconds(found[f"{variant}.seconds"])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                best, std = np.nanmax(scores, axis=1), np.nanstd(np.maximum(scores, -1), axis=1)
            cells = [variant, len(codes), codes[:, :, 0].size * 3]
            cells += [f"{np.mean(codes[:, :, 0] == code):.2%}" for code in (CAPPED, FAILED)]
            cells += [f"{1e3 * seconds.mean():.1f}", f"{np.mean(std < MIN_STD):.0%}"]
            cells += [f"{np.nanmedian(best):.2f}", f"{np.nanmedian(std):.3f}"]
            lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def compare_inputs(
    tables: dict[str, Surfaces],
    predictions: dict[tuple[str, str], np.ndarray],
    measure: Callable[[Surfaces, np.ndarray], np.ndarray],
) -> list[str]:
    """Table of one measure: variants in rows, inputs in columns."""
    lines = ["| variant | data sets | " + " | ".join(INPUTS) + " |"]
    lines.append("|---" * (2 + len(INPUTS)) + "|")
    means: dict[str, list[float]] = {inputs: [] for inputs in INPUTS}
    for variant, surfaces in tables.items():
        cells = []
        for inputs in INPUTS:
            values = measure(surfaces, predictions[variant, inputs])
            mean, half = interval(values, surfaces.families)
            means[inputs].append(mean)
            cells.append(f"{mean:.3f} ± {half:.3f}")
        lines.append(f"| {variant} | {len(surfaces.scores)} | " + " | ".join(cells) + " |")
    last = " | ".join(f"**{np.mean(values):.3f}**" for values in means.values())
    return [*lines, f"| mean | | {last} |"]


def compare_origins(
    tables: dict[str, Surfaces], predictions: dict[tuple[str, str], np.ndarray]
) -> list[str]:
    """Unexplained share on synthetic and on perturbed tables, apart."""
    lines = ["| tables | " + " | ".join(INPUTS) + " |", "|---" * (1 + len(INPUTS)) + "|"]
    for origin in ("synthetic", "perturbed"):
        cells = []
        for inputs in INPUTS:
            shares = []
            for variant, surfaces in tables.items():
                use = surfaces.is_synthetic == (origin == "synthetic")
                share = unexplained(surfaces, predictions[variant, inputs])[use]
                shares += [share.mean()] if len(share) else []
            cells.append(f"{np.mean(shares):.3f}" if shares else "")
        lines.append(f"| {origin} | " + " | ".join(cells) + " |")
    return lines


def make_report(folder: Path, variants: list[str] | None, n_jobs: int = 1) -> list[str]:
    """All tables, as lines of Markdown."""
    lines = ["## Store", "", *describe_store(folder), ""]
    for task in METRICS:
        tables = {}
        for variant in variants_of(task):
            if variants is None or variant in variants:
                surfaces = load_surfaces(task, variant, folder)
                if surfaces is not None and len(set(surfaces.families)) > 2 * N_SPLITS:
                    tables[variant] = surfaces
        cells = [(variant, inputs) for variant in tables for inputs in INPUTS]
        jobs = [delayed(predict_surfaces)(tables[v], INPUTS[inputs]) for v, inputs in cells]
        predictions = dict(zip(cells, Parallel(n_jobs)(jobs), strict=True))
        if not tables:
            continue
        lines += [f"## {task.capitalize()}: {METRICS[task][0]}", ""]
        lines += ["Unexplained share of the score surfaces:", ""]
        lines += [*compare_inputs(tables, predictions, unexplained), ""]
        lines += ["Regret of the configuration with the best prediction, of 20:", ""]
        lines += [*compare_inputs(tables, predictions, regret), ""]
        lines += ["Unexplained share, by the origin of the tables:", ""]
        lines += [*compare_origins(tables, predictions), ""]
    return lines


def insert_tables(page: str, tables: str) -> str:
    """Replace what a page has between the two marks."""
    before, rest = page.split(MARKS[0])
    return f"{before}{MARKS[0]}\n\n{tables}\n{MARKS[1]}{rest.split(MARKS[1])[1]}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", type=Path, default=FOLDER)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--variants", nargs="+", help="such as SVC-scaled; all by default")
    parser.add_argument("--out", type=Path, default=REPORT, help="file that holds the tables")
    options = parser.parse_args()
    text = "\n".join(make_report(options.store, options.variants, options.jobs))
    print(text)
    options.out.write_text(insert_tables(options.out.read_text(), text))


if __name__ == "__main__":
    main()
