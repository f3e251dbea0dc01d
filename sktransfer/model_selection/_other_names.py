"""Say that the space is called `space` to those who come from another search."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec

P = ParamSpec("P")
OTHER_NAMES_OF_SPACE = ("param_grid", "param_distributions", "search_spaces")


def explain_other_names(init: Callable[P, None]) -> Callable[P, None]:
    """Say that the space is called `space` to those who come from another search."""

    @functools.wraps(init)  # scikit-learn reads the parameters from the signature
    def checked(*args: P.args, **kwargs: P.kwargs) -> None:
        for name in OTHER_NAMES_OF_SPACE:
            if name in kwargs:
                raise TypeError(
                    f"TransferSearchCV has no parameter {name!r}. Pass it as 'space', which takes "
                    "the same dicts: TransferSearchCV(estimator, space=...)."
                )
        init(*args, **kwargs)

    return checked
