"""Thompson sampling: draw what the scores may be, and take the best of the draw."""

from __future__ import annotations

import numpy as np

from sktransfer.surrogates import Posterior


def thompson(posterior: Posterior, theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One joint draw of the scores of some configurations; (n, d) -> (n,)."""
    return posterior.sample(theta, 1, rng)[0]
