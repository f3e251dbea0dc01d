"""The store as arrays to train on: profiles of data sets, and score surfaces of each estimator.

Notation: D data sets of a task, F numbers of a profile, c configurations of a data set, k columns
of a configuration's code, M metrics.

Scores are made comparable within each data set. Low outliers are clipped, so that one absurd
configuration does not hide the differences between the others. A surface whose variance is mostly
noise of the folds has a small weight.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy.stats import norm, rankdata

from benchmarks.pretraining.configurations import (
    Choice,
    Real,
    Spec,
    draw_configurations,
    specs_of,
)
from benchmarks.pretraining.evaluate import BOUNDED, N_FOLDS, variants_of
from benchmarks.pretraining.generator import kind_of
from benchmarks.pretraining.store import FOLDER, decode_scores, decode_spread, load_group
from sktransfer.dataset import DatasetProfile
from sktransfer.dataset._sketch import N_FEATURES, SKETCH_FORMAT
from sktransfer.pretrained._configurations import ConfigurationEncoder, Parameter, Units
from sktransfer.pretrained._inputs import name_numbers

GROUPS = ("cheap", "medium", "forests", "networks", "slow")
MAX_LOSS = 3.0  # interquartile ranges below the first quartile at which scores are clipped
MIN_SCORES = 10  # of a data set, without which a surface is left out


@dataclass(frozen=True)
class DataSets:
    """The profiles of the data sets of a task.

    Parameters
    ----------
    numbers : ndarray of int, shape (D,)
    families : ndarray of str, shape (D,)
    profiles : list of DatasetProfile
    names : list of str
        Names of the numbers that profiles of the task have.
    features : ndarray of shape (D, F)
        NaN where a profile lacks a number.
    """

    numbers: np.ndarray
    families: np.ndarray
    profiles: list[DatasetProfile]
    names: list[str]
    features: np.ndarray


@dataclass(frozen=True)
class Surface:
    """Scores of one variant of an estimator.

    Parameters
    ----------
    owner : str
        Class of the estimator.
    is_scaled : bool
    encoder : ConfigurationEncoder
    rows : ndarray of int, shape (m,)
        Positions of its data sets.
    codes : ndarray of shape (m, c, k)
    scores : ndarray of shape (m, c, M)
        NaN where a fit failed or a metric is not defined.
    noise : ndarray of shape (m,)
        Variance of a mean score that is due to the folds, for the first metric.
    """

    owner: str
    is_scaled: bool
    encoder: ConfigurationEncoder
    rows: np.ndarray
    codes: np.ndarray
    scores: np.ndarray
    noise: np.ndarray


def make_parameters(spec: Spec) -> list[Parameter]:
    """The parameters of a canonical space, as a head reads them."""
    defaults = spec.estimator.get_params() | dict(spec.defaults)
    found = []
    for name, rule in spec.space.items():
        options = rule.values if isinstance(rule, Choice) else (rule,)
        axes = [option for option in options if isinstance(option, Real)]
        if axes:
            axis = axes[0]
            found.append(Parameter(name, (), axis.low, axis.high, axis.log, default=defaults[name]))
        else:
            found.append(Parameter(name, tuple(options), default=defaults[name]))
    return found


@lru_cache(maxsize=2)
def load_data_sets(task: str, folder: Path = FOLDER) -> DataSets:
    """Load the profiles of a task."""
    stored = load_group(folder, "profiles", task)
    profiles = [_read_profile(task, stored, i) for i in range(len(stored["numbers"]))]
    named = [name_numbers(profile) for profile in profiles]
    names = sorted(set().union(*named))
    features = np.array([[each.get(name, np.nan) for name in names] for each in named])
    return DataSets(stored["numbers"], stored["family"], profiles, names, features)


def _read_profile(task: str, stored: dict[str, np.ndarray], i: int) -> DatasetProfile:
    """Build the profile of a stored record again, as far as it is stored."""

    def part(name: str) -> dict[str, float]:
        names = str(stored[f"{name}.names"][i]).split()
        pairs = zip(names, stored[name][i].astype(float), strict=True)
        return {key: float(value) for key, value in pairs if np.isfinite(value)}

    sketch = stored["sketch"][i].astype(float)
    split = 2 * N_FEATURES
    drawn = {"format": SKETCH_FORMAT, "pairs": sketch[:split], "kernels": sketch[split:]}
    log_rows, log_columns = stored["sizes"][i][:2].astype(float)
    return DatasetProfile(
        task,
        n_rows=round(np.exp(log_rows)),
        n_features=round(np.exp(log_columns)),
        meta_features=part("meta_features"),
        scales=part("scales"),
        response_curves=part("response_curves"),
        sketch=drawn if np.isfinite(sketch).all() else None,
    )


def load_surfaces(task: str, folder: Path = FOLDER) -> list[Surface]:
    """Load the surfaces of all variants of a task that were evaluated."""
    data, found = load_data_sets(task, folder), []
    specs = specs_of(task)
    position = {int(number): i for i, number in enumerate(data.numbers)}
    for group in GROUPS:
        stored = load_group(folder, group, task)
        keep = np.array([i for i, n in enumerate(stored["numbers"]) if int(n) in position], int)
        if not len(keep):
            continue
        rows = np.array([position[int(n)] for n in stored["numbers"][keep]])
        for variant, (name, spec, is_scaled) in variants_of(task).items():
            if spec.group != group:
                continue
            encoder = ConfigurationEncoder(name, make_parameters(specs[name]))
            codes = np.stack(
                [
                    encoder.encode(
                        draw_configurations(name, spec, int(data.numbers[row])),
                        Units.from_profile(data.profiles[row], is_scaled),
                    )
                    for row in rows
                ]
            )
            scores = decode_scores(stored[f"{variant}.scores"][keep], BOUNDED[task])
            if task == "regression":
                scores[:, :, 0] += 1.0  # R2 - 1 is stored
            spread = decode_spread(stored[f"{variant}.spread"][keep])
            noise = (spread**2).mean(axis=1) / (N_FOLDS - 1)
            has_scores = np.isfinite(scores[:, :, 0]).sum(axis=1) >= MIN_SCORES
            found.append(
                Surface(
                    name,
                    is_scaled,
                    encoder,
                    rows[has_scores],
                    codes[has_scores].astype(np.float32),
                    scores[has_scores],
                    noise[has_scores],
                )
            )
    return found


def is_synthetic(numbers: np.ndarray) -> np.ndarray:
    """Whether each data set is synthetic."""
    return np.array([kind_of(int(number)).origin == "synthetic" for number in numbers])


# -- comparable scores -----------------------------------------------------------------------------


def normalize(scores: np.ndarray, how: str = "standardize") -> tuple[np.ndarray, ...]:
    """Make the scores of each data set comparable.

    Parameters
    ----------
    scores : ndarray of shape (m, c)
        NaN where a fit failed: the worst score counts.
    how : {"standardize", "copula", "regret"}
        Standardized after clipping low outliers; ranks as normal quantiles; or the distance to the
        best, relative to that of the median, at most 3.

    Returns
    -------
    z : ndarray of shape (m, c)
        Zero where a data set has no scores.
    shift, scale : ndarray of shape (m,)
        Mean and standard deviation of the clipped scores. The scale is 0 where all are equal.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        worst = np.nanmin(scores, axis=1, keepdims=True)
        filled = np.nan_to_num(np.where(np.isfinite(scores), scores, worst))
    low, high = (np.quantile(filled, q, axis=1, keepdims=True) for q in (0.25, 0.75))
    clipped = np.maximum(filled, low - MAX_LOSS * np.maximum(high - low, 1e-3))
    shift, scale = clipped.mean(axis=1), clipped.std(axis=1)
    unit = np.maximum(scale, 1e-9)[:, None]
    if how == "copula":
        ranks = np.stack([rankdata(row) for row in filled]) if len(filled) else filled
        z = norm.ppf((ranks - 0.5) / max(filled.shape[1], 1))
    elif how == "regret":
        best = filled.max(axis=1, keepdims=True)
        distance = np.maximum(best - np.median(filled, axis=1, keepdims=True), 1e-3)
        z = 1.0 - np.clip((best - filled) / distance, 0.0, 3.0)
    else:
        z = (clipped - shift[:, None]) / unit
    return np.where(scale[:, None] > 1e-9, z, 0.0), shift, scale


def signal_weights(scores: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Share of the variance of each surface that is not noise of the folds; (m, c), (m,) -> (m,).

    At least 0.05, so that no surface is lost.
    """
    _, _, scale = normalize(scores)
    share = 1.0 - noise / np.maximum(scale**2, 1e-12)
    return np.where(scale > 1e-6, np.clip(share, 0.05, 1.0), 0.0)
