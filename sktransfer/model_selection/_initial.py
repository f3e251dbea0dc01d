"""The user's own configurations, which a search evaluates first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sktransfer.space import Estimator, Space
from sktransfer.utils._values import params_identity, to_python

Initial = str | Mapping[str, Any] | Sequence[Mapping[str, Any] | str] | None


def parse_initial(initial: Initial, space: Space, estimator: Estimator) -> list[dict[str, Any]]:
    """Complete and check the configurations that are evaluated first, each of them once.

    Parameters
    ----------
    initial : "defaults", dict, list of them or None
        A dict may leave parameters out. They have the estimator's own values, as all of them have
        in "defaults". Values may lie outside of the space.
    space : Space
    estimator : estimator object
    """
    if initial is None:
        return []
    given = [initial] if isinstance(initial, str | Mapping) else list(initial)
    own = estimator.get_params(deep=True)
    found = [_complete(each, space, own) for each in given]
    return list({params_identity(params): params for params in found}.values())


def _complete(
    params: Mapping[str, Any] | str, space: Space, own: Mapping[str, Any]
) -> dict[str, Any]:
    if isinstance(params, str):
        if params != "defaults":
            raise ValueError(f"initial must be 'defaults', a dict or a list, got {params!r}.")
        params = {}
    if not isinstance(params, Mapping):
        raise TypeError(
            f"initial must contain dicts, got {params!r} ({type(params).__name__}). For example "
            "initial=[{'C': 1.0}]."
        )
    names = next((list(b) for b in space.branches if params.keys() <= b.keys()), None)
    if names is None:
        known = sorted({name for branch in space.branches for name in branch})
        raise ValueError(
            f"initial has a configuration that is not in the space: {dict(params)!r}. The "
            f"parameters of the space are {', '.join(known)}."
        )
    missing = [name for name in names if name not in params and name not in own]
    if missing:
        raise ValueError(
            f"initial has no value of {missing[0]!r}, and the estimator has none either. Pass one, "
            f"as in initial=[{{{missing[0]!r}: ...}}]."
        )
    return {name: to_python(params[name]) if name in params else own[name] for name in names}
