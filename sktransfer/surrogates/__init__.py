"""Surrogates: score as a function of (configuration, task). One file for each method.

A registry holds their names. Modules are imported on first use, because many need torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sklearn.base import clone

from sktransfer import encoders
from sktransfer.surrogates.base import (
    EncodedTask,
    Posterior,
    Region,
    ScorePrior,
    SearchHints,
    Surrogate,
)

_CLASSES = {
    "ABLR": "ablr",
    "Bohamiann": "reference.bohamiann",
    "Box": "reference.box",
    "CommonSurface": "common_surface",
    "ContextBohamiann": "reference.context_bohamiann",
    "CopulaGP": "copula_gp",
    "DKLM": "dklm",
    "DNGO": "reference.dngo",
    "DistBLR": "dist_blr",
    "DistGP": "dist_gp",
    "GP": "gp",
    "NearestTaskGP": "reference.nearest_task_gp",
    "RGPE": "reference.rgpe",
    "Random": "random_search",
    "SCoT": "reference.scot",
    "TST": "reference.tst",
    "TargetBLR": "reference.target_blr",
    "TaskPrior": "task_prior",
    "WarmStart": "warm_start",
}

REGISTRY: dict[str, tuple[str, dict[str, Any]]] = {
    "ablr": ("ABLR", {}),
    "auto": ("TaskPrior", {}),
    "bohamiann": ("Bohamiann", {}),
    "bohamiann-context": ("ContextBohamiann", {}),
    "box": ("Box", {}),
    "box-rs": ("Box", {"model": False}),
    "common-surface": ("CommonSurface", {}),
    "copula-gp": ("CopulaGP", {}),
    "copula-ts": ("CopulaGP", {"n_thompson": None}),
    "deep-gp": ("DKLM", {"landmarks": False, "meta": False}),
    "dist-blr": ("DistBLR", {}),
    "dist-gp": ("DistGP", {}),
    "dklm": ("DKLM", {}),
    "dngo": ("DNGO", {}),
    "fsbo": ("DKLM", {"landmarks": False}),
    "gp": ("GP", {}),
    "gp-context-l1": (
        "NearestTaskGP",
        {"n_trials": 300, "best_only": False, "context": True, "metric": "l1"},
    ),
    "gp-nearest": ("NearestTaskGP", {}),
    "init-blr": ("WarmStart", {"model": "blr"}),
    "manual-blr": ("DistBLR", {"encoder": "ManualEncoder"}),
    "manual-gp": ("DistGP", {"encoder": "ManualEncoder"}),
    "multi-blr": ("DistBLR", {"encoder": "TaskIndex"}),
    "multi-gp": ("DistGP", {"encoder": "TaskIndex"}),
    "none-blr": ("TargetBLR", {}),
    "random": ("Random", {}),
    "rgpe": ("RGPE", {}),
    "scot": ("SCoT", {}),
    "scot-mkl": ("SCoT", {"kernel": "mkl"}),
    "task-prior": ("TaskPrior", {"pretrained": False}),
    "tst": ("TST", {}),
    "warm-start": ("WarmStart", {}),
}
"""Name -> class and parameters of a surrogate. Encoders are given by the name of their class."""

__all__ = [
    "ABLR",
    "DKLM",
    "DNGO",
    "GP",
    "REGISTRY",
    "RGPE",
    "TST",
    "Bohamiann",
    "Box",
    "CommonSurface",
    "ContextBohamiann",
    "CopulaGP",
    "DistBLR",
    "DistGP",
    "EncodedTask",
    "NearestTaskGP",
    "Posterior",
    "Random",
    "Region",
    "SCoT",
    "ScorePrior",
    "SearchHints",
    "Surrogate",
    "TargetBLR",
    "TaskPrior",
    "WarmStart",
    "check_surrogate",
    "make_surrogate",
]


def make_surrogate(surrogate: str | Surrogate) -> Surrogate:
    """A new surrogate by its name, or a clone of the given one.

    Parameters
    ----------
    surrogate : str or Surrogate

    Examples
    --------
    >>> from sktransfer.surrogates import make_surrogate
    >>> make_surrogate("random")
    Random()
    """
    check_surrogate(surrogate)
    if isinstance(surrogate, Surrogate):
        return clone(surrogate)
    name, params = REGISTRY[surrogate]
    made = {key: getattr(encoders, v)() if key == "encoder" else v for key, v in params.items()}
    return __getattr__(name)(**made)


def check_surrogate(surrogate: Any) -> None:
    """Raise a ValueError unless this is a known name or a surrogate. It imports nothing."""
    if isinstance(surrogate, Surrogate) or (isinstance(surrogate, str) and surrogate in REGISTRY):
        return
    raise ValueError(
        f"surrogate={surrogate!r} is not known. "
        f"Use one of {sorted(REGISTRY)}, or a Surrogate instance."
    )


def __getattr__(name: str) -> Any:
    if name in _CLASSES:
        return getattr(import_module(f"sktransfer.surrogates.{_CLASSES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
