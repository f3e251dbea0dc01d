"""Regression check: do the profiles of 19 data sets still have the same numbers?

Profiles are the inputs of the shipped pretrained encoder, so a faster way to compute one must not
change it. ``record`` stores the profiles of small data sets of all kinds. ``check`` computes them
again, and prints per data set how many numbers differ, and the largest difference. Fingerprints
must be equal. The recording depends on the versions of scikit-learn and of BLAS, in the last digit.

    python -m benchmarks.same_profiles record     # writes benchmarks/assets/profiles.json.gz
    python -m benchmarks.same_profiles check      # exit code 1 if a number differs
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_linnerud,
    load_wine,
    make_classification,
    make_regression,
)

from benchmarks.runner import make_parser
from sktransfer.dataset import DatasetProfile, profile
from sktransfer.dataset._profile import HASH_FIELDS

RECORDING = Path(__file__).parent / "assets" / "profiles.json.gz"
TOLERANCE = 2e-5
"""Numbers are rounded to four or five digits: that of a sketch may be rounded the other way."""


def data_sets() -> Iterator[tuple[str, Any, Any]]:
    """Yield a name, X and y."""
    rng = np.random.default_rng(0)
    yield "iris", *load_iris(return_X_y=True)
    yield "wine", *load_wine(return_X_y=True)
    yield "breast cancer", *load_breast_cancer(return_X_y=True)
    yield "digits", *load_digits(return_X_y=True)
    yield "diabetes", *load_diabetes(return_X_y=True)
    yield "several outputs", *load_linnerud(return_X_y=True)
    yield "tiny", rng.normal(size=(12, 2)), np.arange(12) % 2
    yield "one column", rng.normal(size=(80, 1)), rng.normal(size=80)
    X, y = make_classification(1000, 20, n_informative=8, n_classes=5, random_state=0)
    yield "five classes", X, y
    yield "missing cells", np.where(rng.random(X.shape) < 0.1, np.nan, X), y
    yield "texts as classes, missing", X[:300], np.array(list("abcde"))[y[:300]]
    yield "regression", *make_regression(3000, 30, noise=10.0, random_state=0)
    yield "wide", rng.normal(size=(150, 700)), rng.integers(0, 3, 150)
    places = rng.integers(0, 2000, 40_000), rng.integers(0, 1500, 40_000)
    words = sp.csr_matrix((rng.random(40_000), places), shape=(2000, 1500))
    yield "sparse", words, np.asarray(words.sum(axis=1)).ravel()
    texts = [" ".join(rng.choice(["to", "be", "or", "not"], 9)) for _ in range(200)]
    yield "texts", texts, rng.integers(0, 2, 200)
    counts = rng.poisson(1.0, size=(5000, 12))
    yield "counts with equal rows", counts, (counts.sum(axis=1) > 12).astype(int)
    mixed = pd.DataFrame({"a": rng.normal(size=400), "b": rng.choice(["x", "y", "z"], 400)})
    mixed["c"] = np.where(rng.random(400) < 0.2, None, mixed["b"])
    yield "a frame of categories", mixed, mixed["a"] > 0
    yield "a million cells", rng.normal(size=(20_000, 50)).astype(np.float32), np.arange(20_000) % 7
    heavy = rng.standard_cauchy((500, 6)) * 1e6
    yield "heavy tails", heavy, rng.standard_cauchy(500)


def numbers_of(found: DatasetProfile) -> dict[str, Any]:
    """Return the numbers of a profile by name, and one digest of its fingerprints."""
    hashes = hashlib.sha256()
    for name in (*HASH_FIELDS, "row_hashes"):
        hashes.update(getattr(found, name).tobytes())
    numbers: dict[str, Any] = {"fingerprints": hashes.hexdigest(), "notes": list(found.notes)}
    for group in ("meta_features", "response_curves", "scales"):
        numbers |= {f"{group} {name}": x for name, x in getattr(found, group).items()}
    for part in ("pairs", "kernels"):
        values = (found.sketch or {}).get(part, ())
        numbers |= {f"sketch {part} {i}": x for i, x in enumerate(values)}
    return numbers


def check(recorded: dict[str, dict], again: dict[str, dict]) -> int:
    """Print how the profiles differ, and return how many differ by more than TOLERANCE."""
    n_changed = 0
    for name, new in again.items():
        old = recorded[name]
        changes, is_same = {}, old.keys() == new.keys()
        for key in old.keys() & new.keys():
            if isinstance(old[key], float):
                changes[key] = abs(old[key] - new[key]) / max(1.0, abs(old[key]))
            elif old[key] != new[key]:
                is_same = False
        largest = max(changes, key=changes.__getitem__)
        # Features that are not rounded differ in the last bits.
        n_differ = sum(change > 1e-9 for change in changes.values())
        n_changed += not is_same or changes[largest] > TOLERANCE
        what = "" if is_same else "; fingerprints, notes or names differ"
        print(f"{name:26} {n_differ:3} of {len(changes)}, {changes[largest]:.1e} ({largest}){what}")
    return n_changed


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("command", choices=["record", "check"])
    command = parser.parse_args().command
    again = {name: numbers_of(profile(X, y)) for name, X, y in data_sets()}
    if command == "check":
        sys.exit(bool(check(json.loads(gzip.decompress(RECORDING.read_bytes())), again)))
    text = json.dumps(again, sort_keys=True)
    RECORDING.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
