"""Surrogates: score as a function of (configuration, task). One file a method, one registry of names.

Nothing here is imported before it is asked for, because most surrogates need torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sklearn.base import clone

from sktransfer import encoders
from sktransfer.surrogates.base import EncodedTask, Posterior, Surrogate

_CLASSES = {
    "DistBLR": "dist_blr",
    "DistGP": "dist_gp",
    "GP": "gp",
    "Random": "random",
    "WarmStart": "warm_start",
}

REGISTRY = {
    "auto": ("WarmStart", None),
    "dist-blr": ("DistBLR", "PairEncoder"),
    "dist-gp": ("DistGP", "PairEncoder"),
    "gp": ("GP", None),
    "manual-blr": ("DistBLR", "ManualEncoder"),
    "manual-gp": ("DistGP", "ManualEncoder"),
    "multi-blr": ("DistBLR", "TaskIndex"),
    "multi-gp": ("DistGP", "TaskIndex"),
    "random": ("Random", None),
    "warm-start": ("WarmStart", None),
}
"""Name of a surrogate -> its class, and the class of its encoder if it has one."""

__all__ = [
    "GP",
    "REGISTRY",
    "DistBLR",
    "DistGP",
    "EncodedTask",
    "Posterior",
    "Random",
    "Surrogate",
    "WarmStart",
    "check_surrogate",
    "make_surrogate",
]


def make_surrogate(surrogate: str | Surrogate) -> Surrogate:
    """A fresh surrogate, by its name or as a copy of the one given.

    >>> make_surrogate("random")
    Random()
    """
    check_surrogate(surrogate)
    if isinstance(surrogate, Surrogate):
        return clone(surrogate)
    name, encoder = REGISTRY[surrogate]
    return __getattr__(name)(**({"encoder": getattr(encoders, encoder)()} if encoder else {}))


def check_surrogate(surrogate: Any) -> None:
    """Raise a ValueError that lists the names, if this is none of them and no surrogate; imports nothing."""
    if isinstance(surrogate, Surrogate) or (isinstance(surrogate, str) and surrogate in REGISTRY):
        return
    raise ValueError(
        f"surrogate={surrogate!r} is not known. Give one of {sorted(REGISTRY)}, or a Surrogate instance."
    )


def __getattr__(name: str) -> Any:
    if name in _CLASSES:
        return getattr(import_module(f"sktransfer.surrogates.{_CLASSES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
