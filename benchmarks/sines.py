"""Sines, section 5 of Jomaa et al. 2021: does a kernel that reads the trials have better densities?

    OMP_NUM_THREADS=1 python -m benchmarks.sines

Past tasks are a sin(x + b), or a sin(x), with a ~ U(0.1, 5) and b ~ U(0, 2 pi), all on one scale.
`dklm` and `fsbo` are trained on them in the same way. On a new sine both observe the same 5 random
points and then choose 3 more by expected improvement. The program measures the negative log density
of the curve under the posterior. It also measures the correlation of the landmark feature with the
amplitude, for a model with a single landmark feature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sktransfer.optimizer._acquisition import log_expected_improvement
from sktransfer.surrogates import EncodedTask, Posterior, Surrogate, make_surrogate

LOW, HIGH = -5.0, 5.0  # range of x
N_TASKS, N_TRIALS = 50, 20
N_RANDOM, N_CHOSEN = 5, 3
GRID = np.linspace(0, 1, 101)[:, None]  # codes at which curves are compared
SETTINGS: dict[str, Any] = {"scores": "raw", "guard": False, "prior": False}  # the paper's
# Batches are small, because many points reveal the amplitude directly. Then a single feature hardly
# improves the likelihood and is not learned well.
AMPLITUDE_SETTINGS: dict[str, Any] = {
    "n_landmarks": 1,
    "n_trials": 5,
    "n_seen": 8,
    "n_tasks": 25,
    "steps": 400,
    "learning_rate": 0.005,
}


@dataclass(frozen=True)
class Sine:
    """The curve a sin(x + b)."""

    amplitude: float
    phase: float

    def __call__(self, theta: np.ndarray) -> np.ndarray:
        """Return its values at codes; (n, 1) -> (n,)."""
        return self.amplitude * np.sin(LOW + (HIGH - LOW) * theta[:, 0] + self.phase)

    def task(self, theta: np.ndarray, name: str = "") -> EncodedTask:
        return EncodedTask(theta, self(theta), np.array([False]), id=name)


def draw_sines(n: int, rng: np.random.Generator, phases: bool = True) -> list[Sine]:
    """Draw sines as in the paper; without `phases` all phases are 0."""
    return [
        Sine(rng.uniform(0.1, 5), rng.uniform(0, 2 * np.pi) if phases else 0.0) for _ in range(n)
    ]


def trained(
    name: str, seed: int, phases: bool = True, points: int = N_TRIALS, **settings: Any
) -> Surrogate:
    """Return a surrogate trained on sines that depend on the seed only, `points` each."""
    rng = np.random.default_rng(seed)
    tasks = [
        sine.task(rng.random((points, 1)), f"{number}")
        for number, sine in enumerate(draw_sines(N_TASKS, rng, phases))
    ]
    surrogate = make_surrogate(name).set_params(random_state=seed, **SETTINGS | settings)
    return surrogate.fit(tasks)


def explore(
    surrogate: Surrogate, sine: Sine, rng: np.random.Generator
) -> tuple[EncodedTask, Posterior]:
    """Observe random points, then chosen ones; return the task and the last posterior."""
    task = sine.task(rng.random((N_RANDOM, 1)))
    for _ in range(N_CHOSEN):
        mean, std = surrogate.posterior(task).predict(GRID)
        value = log_expected_improvement(mean, std, task.z.max())
        task = sine.task(np.vstack([task.theta, GRID[[value.argmax()]]]))
    return task, surrogate.posterior(task)


def negative_log_density(posterior: Any, sine: Sine) -> float:
    """Return the negative log density of the curve, averaged over the grid.

    Each point has the noise variance of the model.
    """
    mean, std = posterior.predict(GRID)
    gp = posterior.gp
    variance = std**2 + gp.scale**2 * np.exp(gp.h[-1])
    return float(
        np.mean(0.5 * (sine(GRID) - mean) ** 2 / variance + 0.5 * np.log(2 * np.pi * variance))
    )


def densities(surrogate: Surrogate, seed: int, n: int) -> np.ndarray:
    """Return the negative log density of n new sines, the same for each surrogate; -> (n,)."""
    rng = np.random.default_rng([seed, 1])
    sines = draw_sines(n, rng)
    return np.array(
        [
            negative_log_density(
                explore(surrogate, sine, np.random.default_rng([seed, 2, k]))[1], sine
            )
            for k, sine in enumerate(sines)
        ]
    )


def trained_on_amplitudes(seed: int) -> Surrogate:
    """Return a model with one landmark feature, trained on sines a sin(x)."""
    return trained("dklm", seed, phases=False, points=100, **AMPLITUDE_SETTINGS)


def feature_and_amplitude(surrogate: Any, seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return landmark features and amplitudes of n new sines a sin(x); -> (n,), (n,).

    Each feature is computed from 5 random points.
    """
    rng = np.random.default_rng([seed, 3])
    sines = draw_sines(n, rng, phases=False)
    features = [
        surrogate.landmark_features(sine.task(rng.random((N_RANDOM, 1))))[0] for sine in sines
    ]
    return np.array(features), np.array([sine.amplitude for sine in sines])


def compare(seeds: Sequence[int], n: int = 10) -> None:
    """Print the densities of both methods and the correlation for each seed."""
    for seed in seeds:
        dklm, fsbo = (densities(trained(name, seed), seed, n).mean() for name in ("dklm", "fsbo"))
        feature, amplitude = feature_and_amplitude(trained_on_amplitudes(seed), seed, 300)
        r = np.corrcoef(feature, amplitude)[0, 1]
        print(
            f"seed {seed}: dklm {dklm:.2f}, fsbo {fsbo:.2f}, correlation with the amplitude {r:.2f}"
        )


if __name__ == "__main__":
    compare(range(10))
