"""Trials as arrays: codes of configurations, scores, and other metrics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sktransfer.dataset import DatasetProfile
from sktransfer.space import Space
from sktransfer.surrogates import EncodedTask, ScorePrior
from sktransfer.task import Trial
from sktransfer.utils._values import params_identity

MAX_DISTANCE = 10.0
"""In widths of the space. Codes farther outside are moved here: some write 1e200 for no limit."""

MAX_SCORE = 1e100  # the square of a larger number may overflow

Pending = dict[frozenset, dict[str, Any]]
"""Configurations that were asked for and not observed yet, by their identity."""


def trial_scores(trials: Sequence[Trial]) -> np.ndarray:
    """Scores, NaN where a trial failed; -> (n,)."""
    return _bounded([trial.score for trial in trials])


def find_best(trials: Sequence[Trial]) -> int | None:
    """Number of the trial with the best score; None if there is no success."""
    scores = trial_scores(trials)
    return int(np.nanargmax(scores)) if np.isfinite(scores).any() else None


def trial_metrics(trials: Sequence[Trial]) -> dict[str, np.ndarray]:
    """All other metrics by name, NaN where one was not measured; (n,) each."""
    names = dict.fromkeys(name for trial in trials for name in trial.metrics)
    found = {n: _bounded([trial.metrics.get(n, math.nan) for trial in trials]) for n in names}
    return found | {"fit_time": np.array([trial.fit_time for trial in trials], dtype=float)}


def encode_target(
    space: Space,
    trials: Sequence[Trial],
    codes: Sequence[np.ndarray],
    profile: DatasetProfile | None,
    prior: ScorePrior | None,
) -> EncodedTask:
    """The target as surrogates see it."""
    errors = np.array([trial.std_error for trial in trials])
    return EncodedTask(
        np.array(codes).reshape(len(trials), space.n_columns),
        trial_scores(trials),
        space.categorical,
        profile,
        metrics=trial_metrics(trials),
        prior=prior,
        std_error=errors if errors.any() else None,
    )


def _bounded(values: Sequence[float]) -> np.ndarray:
    z = np.array(values, dtype=float)
    return np.where(np.isfinite(z), np.clip(z, -MAX_SCORE, MAX_SCORE), np.nan)


def clip_codes(codes: np.ndarray) -> np.ndarray:
    """Codes at most `MAX_DISTANCE` outside of the space."""
    return np.clip(codes, -MAX_DISTANCE, 1 + MAX_DISTANCE)


def encode_observed(space: Space, params: Mapping[str, Any]) -> np.ndarray:
    """Code of a configuration from outside; a ValueError if the space cannot represent it."""
    code = space.encode(params)
    if np.isnan(code).any():
        names = [name for name, u in zip(space.column_names(), code, strict=True) if np.isnan(u)]
        values = ", ".join(f"{name}={params[name]!r}" for name in names if name is not None)
        raise ValueError(f"{values} is not a number, but the space has a range of numbers there.")
    return clip_codes(code)


def equivalent_keys(space: Space, code: np.ndarray) -> list[frozenset]:
    """Identity of the member of the space that has this code, if there is one.

    An observed 3.0, or 3 with rounding errors, is the same configuration as the 3 of the space. But
    1000 is not the 100 that the space ends with.
    """
    member = space.decode(code)
    return [params_identity(member)] if np.allclose(space.encode(member), code, atol=1e-6) else []


def still_pending(space: Space, pending: Pending, observed: np.ndarray) -> Pending:
    """The pending configurations without the one that was observed, given its code."""
    codes = space.encode(list(pending.values())) if pending else ()
    # People log six digits and report what they logged, so rounded values count as the same.
    same = [np.allclose(code, observed, rtol=0, atol=1e-6, equal_nan=True) for code in codes]
    return {
        key: params
        for (key, params), is_same in zip(pending.items(), same, strict=True)
        if not is_same
    }


def add_predicted_trials(target: EncodedTask, codes: np.ndarray, z: np.ndarray) -> EncodedTask:
    """The target with further trials, of which only a (predicted) score is known."""
    unknown = np.full(len(z), math.nan)
    return replace(
        target,
        theta=np.vstack([target.theta, codes]),
        z=np.concatenate([target.z, z]),
        metrics={name: np.append(values, unknown) for name, values in target.metrics.items()},
        std_error=None if target.std_error is None else np.append(target.std_error, 0 * z),
    )
