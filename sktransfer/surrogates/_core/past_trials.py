"""`PastTrials`: the trials of all past tasks in one table, with comparable scores.

Notation: m tasks with N trials in all; theta (N, d) codes, z (N,) comparable scores, owner (N,) the
number of each trial's task. A task's own scores are shift + scale z.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from sktransfer.surrogates.base import EncodedTask
from sktransfer.utils._scores import clip_low_outliers, standardize

_MAD_TO_STD = 1.4826  # standard deviation of a normal distribution in median absolute deviations
_MAX_DEVIATIONS = 3.0  # from the median, beyond which a value is winsorized


@dataclass(frozen=True)
class Level:
    """Prior of the shift and scale of a new task's scores: normal shift, log-normal scale."""

    shift: float
    shift_std: float
    log_scale: float
    log_scale_std: float

    def mixed(self, other: Level, share: float) -> Level:
        """The mean and standard deviation of a mixture: this level with a share, or the other.

        >>> mixed = Level(0.9, 0.04, -3.0, 0.5).mixed(Level(0.6, 0.2, -2.0, 0.7), 0.4)
        >>> round(mixed.shift, 2), round(mixed.shift_std, 2)
        (0.72, 0.22)
        """
        shares = np.array([share, 1 - share])
        moments = []
        for means, stds in (
            ([self.shift, other.shift], [self.shift_std, other.shift_std]),
            ([self.log_scale, other.log_scale], [self.log_scale_std, other.log_scale_std]),
        ):
            mean = shares @ np.array(means)
            variance = shares @ (np.square(stds) + np.square(means - mean))
            moments += [float(mean), float(np.sqrt(variance))]
        return Level(*moments)

    def recentered(self, seen: np.ndarray) -> Level:
        """This level, or one around the observed scores (n,) if these are implausible under it.

        Errors are in the units of the data: those of house prices say nothing about those of a
        length.

        >>> accuracies = Level(0.8, 0.1, -3.0, 0.5)
        >>> accuracies.recentered(np.array([0.6, 0.9])) is accuracies
        True
        >>> Level(-2.0, 1.0, -1.0, 0.5).recentered(np.array([-3e4, -2e4])).shift
        -25000.0
        """
        seen = clip_low_outliers(seen[np.isfinite(seen)])
        if not len(seen) or self.shift_std == 0:
            return self
        center, same = float(seen.mean()), np.ptp(seen) <= 1e-12 * np.abs(seen).max()
        spread = 0.0 if same else float(seen.std())
        factor = np.log(spread) - self.log_scale if spread else 0.0
        apart = abs(center - self.shift)
        wider = factor > 3 * self.log_scale_std
        # A few good trials differ less than those of a whole past search.
        narrower = len(seen) >= 3 and factor < -3 * (self.log_scale_std + 1)
        if apart > 10 * self.shift_std:  # another unit: differences grow by the same factor
            unit = abs(center) / max(abs(self.shift), self.shift_std)
            spread = max(spread, 0.1 * unit * float(np.exp(self.log_scale)))
            # It may be a single bad trial, so the past level stays possible.
            reach = max(3 * spread, min(apart, 1e3 * spread))
        elif wider or narrower:
            reach = 3 * spread
        else:
            return self
        return Level(center, reach, float(np.log(spread)), 1.0) if spread else self


@dataclass(frozen=True)
class PastTrials:
    """Trials of the past tasks. See the notation above for the arrays."""

    theta: np.ndarray
    z: np.ndarray
    owner: np.ndarray
    ids: np.ndarray
    shifts: np.ndarray
    scales: np.ndarray
    categorical: np.ndarray

    @classmethod
    def from_tasks(
        cls,
        tasks: Sequence[EncodedTask],
        scores: str | Callable[[EncodedTask], np.ndarray],
        winsorize: bool = True,
    ) -> PastTrials:
        """Concatenate the tasks.

        Parameters
        ----------
        tasks : sequence of EncodedTask
        scores : {"standardize", "raw"} or callable
            Standardize each task's scores, keep the one scale that all tasks share, or compute the
            scores of a task by a function.
        winsorize : bool
            Whether scores far below a task's median are raised before they are standardized.
        """
        if scores == "raw":
            finite = [task.z[np.isfinite(task.z)] for task in tasks]
            _, shift, scale = standardize(np.concatenate([*finite, np.empty(0)]))
            worst = min((z.min() for z in finite if len(z)), default=0.0)
            columns = [(np.where(np.isfinite(t.z), t.z, worst) - shift) / scale for t in tasks]
            shifts, scales = [shift] * len(tasks), [scale] * len(tasks)
        elif callable(scores):
            columns = [scores(task) for task in tasks]
            shifts, scales = [0.0] * len(tasks), [1.0] * len(tasks)
        else:
            made = [standardize(task.z, winsorize=winsorize) for task in tasks]
            columns = [z for z, _, _ in made]
            shifts, scales = [shift for _, shift, _ in made], [scale for _, _, scale in made]
        d = tasks[0].theta.shape[1] if tasks else 0
        return cls(
            theta=np.vstack([np.empty((0, d)), *(task.theta for task in tasks)]),
            z=np.concatenate([np.empty(0), *columns]),
            owner=np.repeat(np.arange(len(tasks)), [len(task.z) for task in tasks]),
            ids=np.array([task.id for task in tasks], dtype=str),
            shifts=np.array(shifts, dtype=float),
            scales=np.array(scales, dtype=float),
            categorical=tasks[0].categorical if tasks else np.empty(0, dtype=bool),
        )

    def join(self, other: PastTrials) -> PastTrials:
        """The tasks of both, those of `other` last."""
        owner = np.concatenate([self.owner, other.owner + len(self)])
        names = [field.name for field in fields(self) if field.name not in ("owner", "categorical")]
        joined = {n: np.concatenate([getattr(self, n), getattr(other, n)]) for n in names}
        return PastTrials(owner=owner, categorical=self.categorical, **joined)

    def arrays(self) -> dict[str, np.ndarray]:
        """The fields by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __len__(self) -> int:
        """Number of tasks."""
        return len(self.ids)

    def level(
        self, weights: np.ndarray, known: np.ndarray, seen: np.ndarray, shared: bool = False
    ) -> Level:
        """Prior of a new task's shift and scale, from those of the past tasks.

        The standard deviations are never smaller than those that a single task leaves open.

        Parameters
        ----------
        weights : ndarray of shape (m,)
            Similarity of each past task to the new one.
        known : ndarray of bool, shape (m,)
            The past tasks to use.
        seen : ndarray of shape (n,)
            Observed scores of the new task. They decide if they are implausible under the prior.
        shared : bool
            Whether all tasks share one scale, so that nothing is to be estimated.
        """
        if shared:
            return Level(float(self.shifts[0]), 0.0, float(np.log(self.scales[0])), 0.0)
        weights, logs = weights[known] + 1e-3, _winsorize(np.log(self.scales[known]), 0.5)
        shifts = _winsorize(self.shifts[known], float(np.exp(np.median(logs))))
        shift, log_scale = np.average(shifts, weights=weights), np.average(logs, weights=weights)
        shift_var = np.average((shifts - shift) ** 2, weights=weights) + np.exp(2 * log_scale)
        log_var = np.average((logs - log_scale) ** 2, weights=weights) + 0.25
        level = Level(
            float(shift), float(np.sqrt(shift_var)), float(log_scale), float(np.sqrt(log_var))
        )
        return level.recentered(seen)

    def best_settings(self, n: int, usable: np.ndarray) -> np.ndarray:
        """Codes of the n best trials of each usable task, as in `best_rows`; -> (k, d)."""
        return self.theta[self.best_rows(n, usable)]

    def best_rows(
        self, n: int, usable: np.ndarray, unknown: np.ndarray | None = None
    ) -> np.ndarray:
        """Rows of the n best trials of each usable task; -> (k,).

        Trials whose settings do not exist in the target's space are skipped. Columns that a task
        does not know, (m, d), do not matter.
        """
        is_foreign = (self.theta < 0) & self.categorical
        if unknown is not None:
            is_foreign &= ~unknown[self.owner]
        known = usable[self.owner] & ~is_foreign.any(axis=1)
        best = [np.empty(0, dtype=int)]
        for task in range(len(self)):
            rows = np.flatnonzero((self.owner == task) & known)
            best.append(rows[np.argsort(-self.z[rows], kind="stable")[:n]])
        return np.concatenate(best)

    def farthest_point_order(
        self, lengthscales: np.ndarray, first: int | None = None
    ) -> np.ndarray:
        """Rank of each trial within its task, from 0; (d,) -> (N,).

        The best trial comes first, then always the one farthest from those taken, in units of the
        lengthscales. This greedy choice leaves a Gaussian process with the smallest largest
        uncertainty, so the first n trials represent a task well. With `first`, only so many are
        ranked and all others get the rank N.
        """
        ranks = np.full(len(self.z), len(self.z))
        lengths, categorical = lengthscales[:, None], self.categorical[:, None]
        for task in range(len(self)):
            rows = np.flatnonzero(self.owner == task)
            theta, z = (
                np.ascontiguousarray(self.theta[rows].T),
                self.z[rows],
            )  # (d, n): sums over columns
            nearest = np.full(len(rows), np.inf)
            current = int(np.argmax(z)) if len(z) else 0
            for rank in range(len(rows) if first is None else min(first, len(rows))):
                ranks[rows[current]] = rank
                apart = (theta - theta[:, [current]]) / lengths
                if categorical.any():
                    apart = np.where(categorical, (apart != 0) / lengths, apart)
                nearest = np.minimum(nearest, (apart * apart).sum(axis=0))
                nearest[current] = -np.inf
                current = int(np.argmax(nearest))
        return ranks

    def representative_trials(
        self,
        similarity: np.ndarray,
        usable: np.ndarray,
        max_trials: int,
        order: np.ndarray | None,
    ) -> np.ndarray:
        """Rows to condition a process on, at most `max_trials`; -> (k,).

        A task's share is proportional to its squared similarity, the part of the target's variance
        that it can explain.

        Parameters
        ----------
        similarity : ndarray of shape (m,)
        usable : ndarray of bool, shape (m,)
        max_trials : int
        order : ndarray of shape (N,) or None
            `farthest_point_order`, needed if the usable tasks have more than `max_trials` trials.
        """
        rows = np.flatnonzero(usable[self.owner])
        if len(rows) <= max_trials or order is None:
            return rows
        # Trial number r of a task is taken once the task's share has grown to r + 1.
        turn = (order[rows] + 1) / np.maximum(similarity[self.owner[rows]] ** 2, 1e-6)
        return np.sort(rows[np.argsort(turn, kind="stable")[:max_trials]])

    def describe_usage(self, texts: Sequence[str], rows: np.ndarray) -> list[str]:
        """Each task's text, with the number of its trials that are in `rows`."""
        used, there = (
            np.bincount(owner, minlength=len(self)) for owner in (self.owner[rows], self.owner)
        )
        return [
            f"{text}; {k} of its {n} trials" for text, k, n in zip(texts, used, there, strict=True)
        ]


def _winsorize(values: np.ndarray, typical_spread: float) -> np.ndarray:
    """Clip values (m,) to three robust standard deviations around their median; -> (m,).

    One past task with an R² of -400 tells nothing about others. The robust standard deviation is
    increased by `typical_spread`, so that a few tasks that agree leave room for others.
    """
    middle = np.median(values)
    mad = np.median(np.abs(values - middle))
    reach = _MAX_DEVIATIONS * (_MAD_TO_STD * mad + typical_spread)
    return np.clip(values, middle - reach, middle + reach)
