"""What of a profile may be stored: no more than its number of rows justifies.

A sketch has about 160 numbers, and a profile about thirty meta-features and eighty scores. If the
table itself has fewer numbers than that, they can be inverted: an attack that fits a table to the
sketch found 10 of 10 rows of one column, and 25 of 40. So of small tables only sizes and class
ratios are stored. The numbers of larger tables are rounded to about a tenth of their sampling
error, because all further digits describe these very rows and not the distribution that they come
from. In memory, a search describes its own data in full, however small they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

MIN_ROWS = 100
MAX_DIGITS = 5
SIZES = ("log_rows", "log_columns", "log_outputs", "log_classes")  # known anyway
_DESCRIPTIONS = ("sketch", "meta_features", "response_curves", "scales")


def limit_disclosure(profile: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out or round what describes single rows of a plain profile. Samples are kept.

    Examples
    --------
    >>> small = {"n_rows": 20, "n_features": 3, "sketch": {"format": 1, "pairs": [0.12345]}}
    >>> limit_disclosure(small)["sketch"] is None
    True
    >>> limit_disclosure({**small, "n_rows": 2000})["sketch"]["pairs"]
    [0.123]
    """
    limited = dict(profile)
    n_rows, features = profile["n_rows"], profile.get("meta_features") or {}
    sketch = profile.get("sketch")
    curves, scales = (profile.get(name) or {} for name in ("response_curves", "scales"))
    if n_rows < MIN_ROWS:  # a description of the table would reveal its rows
        features = {name: features[name] for name in SIZES if name in features}
        sketch, curves, scales = None, {}, {}
    n_digits = count_digits(n_rows)
    if sketch is not None:
        sketch = {
            name: value if name == "format" else [round(x, n_digits) for x in value]
            for name, value in sketch.items()
        }
    features = {
        name: x if name in SIZES else _round_relative(x, n_digits + 1)
        for name, x in features.items()
    }
    found = {
        "sketch": sketch,
        "meta_features": features,
        "response_curves": {name: round(x, n_digits) for name, x in curves.items()},
        "scales": {name: round(x, n_digits) for name, x in scales.items()},
    }
    return limited | {name: found[name] for name in _DESCRIPTIONS if name in profile}


def count_digits(n_rows: int) -> int:
    """Count the decimals of a mean over n rows that describe more than these rows.

    >>> [count_digits(n) for n in (100, 101, 500, 10_000, 10**6)]
    [2, 3, 3, 3, 4]
    """
    return min(MAX_DIGITS, math.ceil(math.log10(max(n_rows, 10)) / 2 - 1e-9) + 1)


def _round_relative(x: float, n_digits: int) -> float:
    """Round a number to its leading digits."""
    return float(f"{x:.{n_digits}g}")
