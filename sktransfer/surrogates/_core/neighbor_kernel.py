"""The kernel 1 - |theta - theta'| / B of Yogatama & Mann 2014, section 3.4, with a B that makes it one.

Notation: theta (n, d) codes, numbers in [0, 1]; in categorical columns only equality counts.
"""

from __future__ import annotations

import math

import numpy as np
import torch


def distance_bound(d: int) -> float:
    """The B that makes 1 - |theta - theta'| / B positive semi-definite on the unit cube of d columns.

    Draw a hyperplane that cuts the cube: its normal u from N(0, I), weighted by |u|_1, the cube's extent
    along u, and its offset evenly from that extent. It lies between theta and theta' with probability

        E|u (theta - theta')| / E|u|_1 = |theta - theta'| / d,

    for u (theta - theta') is normal with deviation |theta - theta'|, and |u|_1 is a sum of d such terms of
    deviation 1. Let h be 1 on its one side and -1 on the other: then E[h(theta) h(theta')] = 1 - 2 |theta -
    theta'| / d is an average of products, hence positive semi-definite, and so is every 1 - |.| / B with
    B >= d / 2, a constant more and a multiple of it. The paper's B, the cube's largest distance sqrt(d), is
    as large up to d = 4; from d = 6 on there are settings for which it is too small.

    >>> [distance_bound(d) for d in (1, 4, 10)]
    [1.0, 2.0, 5.0]
    """
    return max(math.sqrt(d), d / 2)


def neighbor_covariance(A: torch.Tensor, B: torch.Tensor, categorical: np.ndarray) -> torch.Tensor:
    """1 - |theta - theta'| / B over the numbers, times 1 - [differs] / B for each category; -> (n, m).

    A category that differs counts as much as a number from one end of its scale to the other. Each factor is
    positive semi-definite (the latter is 1 - 1/B plus [equal] / B, and B >= 1), hence their product is. Past
    numbers outside of today's bounds count as on them: a B for a cube that holds them all would be too large
    to tell today's settings apart.
    """
    numbers = torch.from_numpy(~categorical)
    reach = distance_bound(max(A.shape[1], 1))
    a, b = (each[:, numbers].clamp(0, 1) for each in (A, B))
    # Of two settings that are all but equal the quick way gets the distance wrong by the root of a rounding.
    kernel = 1 - torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist") / reach
    for column in np.flatnonzero(categorical):
        kernel = kernel * (1 - (A[:, None, column] != B[None, :, column]) / reach)
    return kernel
