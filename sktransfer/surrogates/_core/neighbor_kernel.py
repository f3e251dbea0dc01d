"""The kernel 1 - |theta - theta'| / B of Yogatama & Mann 2014, section 3.4, with a valid B.

Notation: theta (n, d) codes, numbers in [0, 1]; codes of categorical columns can only be equal or
different.
"""

from __future__ import annotations

import math

import numpy as np
import torch


def distance_bound(d: int) -> float:
    """A B that makes 1 - |theta - theta'| / B positive semi-definite on the unit cube of d columns.

    Draw a hyperplane that cuts the cube: its normal u from N(0, I), weighted by |u|_1, the cube's
    extent along u, and its offset uniformly from that extent. It separates theta and theta' with
    probability

        E|u (theta - theta')| / E|u|_1 = |theta - theta'| / d,

    because u (theta - theta') is normal with deviation |theta - theta'|, and |u|_1 is a sum of d
    such terms of deviation 1. Let h be 1 on one side and -1 on the other. Then E[h(theta)
    h(theta')] = 1 - 2 |theta - theta'| / d is an average of products, hence positive semi-definite.
    So is every 1 - |.| / B with B >= d / 2, which adds a constant and scales it. The paper's B, the
    cube's largest distance sqrt(d), is as large up to d = 4. From d = 6 on it is too small for some
    settings.

    >>> [distance_bound(d) for d in (1, 4, 10)]
    [1.0, 2.0, 5.0]
    """
    return max(math.sqrt(d), d / 2)


def neighbor_covariance(A: torch.Tensor, B: torch.Tensor, categorical: np.ndarray) -> torch.Tensor:
    """1 - |theta - theta'| / B of the numbers, times 1 - [differs] / B of each category; -> (n, m).

    A differing category counts as much as a number at the other end of its range. Each factor is
    positive semi-definite (the latter is 1 - 1/B plus [equal] / B, and B >= 1), hence so is their
    product. Past numbers outside the target's bounds are clipped to them: with a B for a cube that
    holds them all, the target's settings would hardly differ.
    """
    numbers = torch.from_numpy(~categorical)
    bound = distance_bound(max(A.shape[1], 1))
    a, b = (each[:, numbers].clamp(0, 1) for each in (A, B))
    # For nearly equal settings the faster method has errors of the square root of the rounding
    # error.
    kernel = 1 - torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist") / bound
    for column in np.flatnonzero(categorical):
        kernel = kernel * (1 - (A[:, None, column] != B[None, :, column]) / bound)
    return kernel
