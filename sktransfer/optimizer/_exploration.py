"""Configurations that are chosen without a model: space-filling, then at random."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sktransfer.optimizer._maximize import fill_space, sample
from sktransfer.optimizer._pool import Pool
from sktransfer.space import Space
from sktransfer.surrogates import Region, SearchHints
from sktransfer.utils._values import params_identity

MAX_LISTED = 10**6  # up to this size, the untried members of a finite space can be listed


def explore(
    space: Space,
    members: Pool | None,
    hints: SearchHints,
    seen: set[frozenset],
    index: int,
    seed: int,
    rng: np.random.Generator,
) -> tuple[dict[str, Any], str]:
    """A new configuration chosen without a model, and its origin.

    Parameters
    ----------
    space : Space
    members : Pool or None
        The configurations that can be enumerated.
    hints : SearchHints
    seen : set of frozenset
        Identities of the configurations that were proposed or observed.
    index : int
        Number of configurations that were chosen without a model before.
    seed : int
        Of the space-filling sequence.
    rng : numpy Generator
    """
    if members is None and hints.space_filling:
        codes = fill_space(space, index, seed, hints.region, rng)
        if params := first_new(space.decode(codes), seen):
            return params, "space-filling"
    if members is None:
        for n in (64, 4096):  # an unbounded discrete distribution may have few probable values
            if params := first_new(drawn := _draw(space, n, hints.region, rng), seen):
                return params, "random"
        if (space.size or math.inf) > MAX_LISTED:
            return drawn[0], "random"
        members = Pool(space, space.grid())
    left = members.untried(seen) or range(len(members.params))
    if hints.region is not None:
        left = np.asarray(left)[hints.region.contains(members.codes[left])].tolist() or left
    return members.params[rng.choice(left)], "random"


def _draw(
    space: Space, n: int, region: Region | None, rng: np.random.Generator
) -> list[dict[str, Any]]:
    """Random configurations of the space, or of a region of it if that has some of them."""
    if region is None:
        return space.sample(n, rng)
    codes = sample(space, rng, n, region)
    codes = codes[region.contains(codes)]
    return space.decode(codes) if len(codes) else space.sample(n, rng)


def first_new(candidates: Sequence[dict[str, Any]], seen: set[frozenset]) -> dict[str, Any] | None:
    """The first configuration that was neither proposed nor observed; None if all were."""
    return next((params for params in candidates if params_identity(params) not in seen), None)
