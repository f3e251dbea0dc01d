"""`Pool`: configurations that can be enumerated, with their codes."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from sktransfer.space import Space
from sktransfer.utils._values import params_identity

Params = Mapping[str, Any]
ROUNDING = 1e-9  # distance of two codes of the same configuration


class Pool:
    """Configurations that can be enumerated.

    Parameters
    ----------
    space : Space
    params : sequence of dict
    source : sequence of dict or None
        The caller's pool that this one is made of.
    """

    def __init__(
        self, space: Space, params: Sequence[Params], source: Sequence[Params] | None = None
    ):
        self._source = None if source is None else list(source)
        self.params = [dict(p) for p in params]
        self.codes = space.encode(self.params) if self.params else np.empty((0, space.n_columns))
        self._keys = [params_identity(p) for p in self.params]
        self._categorical = space.categorical

    def is_made_of(self, source: Sequence[Params] | None) -> bool:
        """Whether the caller's pool still has the very members that this one was made of."""
        if source is None or self._source is None:
            return source is self._source
        return len(source) == len(self._source) and all(map(operator.is_, source, self._source))

    def subset(self, members: Sequence[int]) -> Pool:
        """The pool of some members, without encoding them again."""
        subset = copy(self)
        subset._source = None
        subset.params = [self.params[i] for i in members]
        subset._keys = [self._keys[i] for i in members]
        subset.codes = self.codes[np.asarray(members, dtype=int)]
        return subset

    def untried(self, seen: set[frozenset]) -> list[int]:
        """Indices of the members whose keys are not in `seen`."""
        return [i for i, key in enumerate(self._keys) if key not in seen]

    def holds(self, codes: np.ndarray) -> np.ndarray:
        """Whether each code is that of a member, up to rounding; (k, d) -> (k,), bool."""
        nearest = [self._distances(self.codes, code).min(initial=np.inf) for code in codes]
        return np.array(nearest) <= ROUNDING

    def nearest(self, code: np.ndarray, among: Sequence[int] | None = None) -> dict[str, Any]:
        """The member nearest to a code, among those of the given indices, or among all."""
        among = range(len(self.params)) if among is None else among
        return self.params[among[int(self._distances(self.codes[among], code).argmin())]]

    def nearest_unless_tried(self, code: np.ndarray, tried: np.ndarray) -> dict[str, Any] | None:
        """The member nearest to a code; None if a trial, (n, d), is at least as near.

        A pool may hold only what has not been tried. Then some member is always the nearest,
        although the code was tried already.
        """
        distances = self._distances(self.codes, code)
        if len(tried) and self._distances(tried, code).min() <= distances.min():
            return None
        return self.params[int(distances.argmin())]

    def _distances(self, codes: np.ndarray, code: np.ndarray) -> np.ndarray:
        """(n, d), (d,) -> (n,)"""
        return np.where(self._categorical, codes != code, np.abs(codes - code)).sum(axis=1)
