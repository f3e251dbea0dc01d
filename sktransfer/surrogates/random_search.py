"""`Random`: random search without a model, the baseline of all comparisons."""

from __future__ import annotations

from sktransfer.surrogates.base import Surrogate


class Random(Surrogate):
    """Random search: the optimizer draws each trial from the distributions of the space.

    Examples
    --------
    >>> from sktransfer import TransferOptimizer
    >>> optimizer = TransferOptimizer({"C": [1, 2, 3]}, surrogate="random", random_state=0)
    >>> len(optimizer.ask(2))
    2
    """
