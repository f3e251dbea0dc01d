"""`PastTrials`: the trials of all past tasks in one table, each task's scores on one scale.

Notation: m tasks, N trials in all; theta (N, d), z (N,) comparable scores, owner (N,) number of the task.
Each task's own score is  shift + scale z.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from sktransfer.surrogates.base import EncodedTask
from sktransfer.utils._scores import clip_low_outliers, standardize

_NORMAL = (
    1.4826  # standard deviation of a normal distribution, in units of its median absolute deviation
)


@dataclass(frozen=True)
class Level:
    """What the past says of the shift and scale of a new task: shift normal, scale log-normal."""

    shift: float
    shift_std: float
    log_scale: float
    log_scale_std: float

    def recentered(self, seen: np.ndarray) -> Level:
        """This level, or where the scores of the target are nowhere near it, (n,), one of their own.

        An error is in the units of the data: those of house prices say nothing of where those of a length
        are. Far is what the past would take for all but impossible.

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
        # Trials that are all good ones differ less than a whole past search.
        narrower = len(seen) >= 3 and factor < -3 * (self.log_scale_std + 1)
        if (
            apart > 10 * self.shift_std
        ):  # in another unit the differences are larger by the same factor
            unit = abs(center) / max(abs(self.shift), self.shift_std)
            spread = max(spread, 0.1 * unit * float(np.exp(self.log_scale)))
            # Or it is one very bad trial: what is usual stays possible.
            reach = max(3 * spread, min(apart, 1e3 * spread))
        elif wider or narrower:
            reach = 3 * spread
        else:
            return self
        return Level(center, reach, float(np.log(spread)), 1.0) if spread else self


@dataclass(frozen=True)
class PastTrials:
    """Trials of the past tasks; arrays as in the notation above."""

    theta: np.ndarray
    z: np.ndarray
    owner: np.ndarray
    ids: np.ndarray
    shifts: np.ndarray
    scales: np.ndarray
    categorical: np.ndarray

    @classmethod
    def from_tasks(
        cls, tasks: Sequence[EncodedTask], scores: str | Callable[[EncodedTask], np.ndarray]
    ) -> PastTrials:
        """Put the tasks together.

        Their scores are standardized, kept ("raw") on the one scale that they share, or made by a function.
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
            made = [standardize(clip_low_outliers(task.z)) for task in tasks]
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

    def arrays(self) -> dict[str, np.ndarray]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __len__(self) -> int:
        """Number of tasks."""
        return len(self.ids)

    def describe_usage(self, words: Sequence[str], rows: np.ndarray) -> list[str]:
        """Words on each task, and for how many of its trials there was room: those in `rows`."""
        used, there = (
            np.bincount(owner, minlength=len(self)) for owner in (self.owner[rows], self.owner)
        )
        return [
            f"{word}; {k} of its {n} trials" for word, k, n in zip(words, used, there, strict=True)
        ]

    def level(
        self, weights: np.ndarray, known: np.ndarray, seen: np.ndarray, shared: bool = False
    ) -> Level:
        """Shift and scale of a new task, from those of the past ones that are known, by how alike they are.

        Where the scores that were seen of it are nowhere near, they decide. With `shared` there is one scale
        for all and nothing to guess. Otherwise the spread is never below what one task would leave open.
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
        """The n best settings of each usable task that exist in today's space; -> (k, d)."""
        return self.theta[self.best_rows(n, usable)]

    def best_rows(self, n: int, usable: np.ndarray) -> np.ndarray:
        """Rows of the n best trials of each usable task whose settings exist in today's space; -> (k,)."""
        known = usable[self.owner] & ~(self.theta[:, self.categorical] < 0).any(axis=1)
        best = [np.empty(0, dtype=int)]
        for task in range(len(self)):
            rows = np.flatnonzero((self.owner == task) & known)
            best.append(rows[np.argsort(-self.z[rows], kind="stable")[:n]])
        return np.concatenate(best)

    def farthest_point_order(self, reach: np.ndarray, first: int | None = None) -> np.ndarray:
        """The trials of each task from the most to the least telling; ranks within the task, (N,).

        The best trial first, then always the one that lies farthest from those taken, distances in units
        of `reach` (the lengthscales): the greedy choice that leaves a Gaussian process with the smallest
        largest uncertainty. The first n of each task are its n most telling trials. If only these are of
        interest, `first` says how many: all others then have the rank N.
        """
        ranks = np.full(len(self.z), len(self.z))
        reach, categorical = reach[:, None], self.categorical[:, None]
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
                apart = (theta - theta[:, [current]]) / reach
                if categorical.any():
                    apart = np.where(categorical, (apart != 0) / reach, apart)
                nearest = np.minimum(nearest, (apart * apart).sum(axis=0))
                nearest[current] = -np.inf
                current = int(np.argmax(nearest))
        return ranks


def _winsorize(values: np.ndarray, usual: float) -> np.ndarray:
    """The values, none of them farther from the median than three times what is usual; (m,) -> (m,).

    One past task with an R² of -400 says nothing of where others are. Usual is the distance of half of them
    plus `usual`, so that a few that agree leave room for others.
    """
    middle = np.median(values)
    reach = 3 * (_NORMAL * np.median(np.abs(values - middle)) + usual)
    return np.clip(values, middle - reach, middle + reach)
