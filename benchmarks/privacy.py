"""Attacks on what is stored and shared: rows by guessing, common rows of two owners, sketches.

The attacker knows the program and every possible value of a row. Each attack is run on three
things: on plain hashes, which the archive does not write (to show that the attack works); on a
default export; and on the archive's folder without its key. Writes docs/results/privacy.md.

    python -m benchmarks.privacy [--report FILE]
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import least_squares
from sklearn.tree import DecisionTreeClassifier

from sktransfer import Archive, Task, TransferSearchCV, profile
from sktransfer.archive import ArchiveKey
from sktransfer.archive._key import HASHES
from sktransfer.dataset._disclosure import limit_disclosure
from sktransfer.dataset._fingerprint import hash_rows
from sktransfer.dataset._sketch import sketch
from sktransfer.dataset._table import read_table
from sktransfer.utils._hashing import digest

REPORT = Path(__file__).parents[1] / "docs" / "results" / "privacy.md"
RNG = np.random.default_rng(0)
NAMES = [f"{first}.{last}" for first in ("ann", "bob", "eve") for last in map(str, range(3000))]


class Table(NamedTuple):
    """Private rows, and all rows that the attacker tries."""

    rows: Any
    guesses: Any


def product(*axes: Any) -> np.ndarray:
    return np.array(list(itertools.product(*axes)), dtype=float)


def private_tables() -> dict[str, Table]:
    people = product(range(1940, 2005), range(1, 13), [0, 1], range(100, 200))
    bodies = product(range(18, 90), range(16, 45), range(90, 190, 2), [0, 1])
    salaries = product(range(20_000, 120_000, 10))
    mails = np.array([f"{name}@example.org" for name in NAMES], dtype=object)[:, None]
    return {
        "year and month of birth, sex, postcode": Table(draw(people, 500), people),
        "age, BMI, blood pressure, sex": Table(draw(bodies, 300), bodies),
        "salaries": Table(draw(salaries, 800), salaries),
        "mail addresses": Table(draw(mails, 400), mails),
    }


def draw(values: np.ndarray, n: int) -> np.ndarray:
    return values[RNG.choice(len(values), n, replace=False)]


def stored_hashes(archive: Archive, names: Sequence[str] = HASHES) -> np.ndarray:
    """Every hash in the profiles of the records, or those of some fields."""
    profiles = [task.profile or {} for task in archive]
    parts = [part for each in profiles for part in (each, *each.get("enclosing", ()))]
    found = [number for part in parts for name in names for number in part.get(name, ())]
    return np.array(found, dtype=np.uint64)


def guess_rows(hashes: np.ndarray, guesses: np.ndarray) -> int:
    """Count the hashes that a guess explains, sealed with no key or with one of the attacker's."""
    hashed = hash_rows(read_table(guesses))
    plain = [hashed[0], hashed[1]]
    own = ArchiveKey(bytes(32))
    sealed = own.seal(profile(guesses[:1000])).fingerprint
    return max(int(np.isin(hashes, each).sum()) for each in (*plain, sealed))


def record(archive: Archive, rows: Any, y: np.ndarray) -> None:
    trials = [({"max_depth": 1}, 0.5)]
    tree = DecisionTreeClassifier()
    archive.append(
        Task.from_trials({"max_depth": [1, 2]}, trials, profile(rows, y), estimator=tree)
    )


def views(
    folder: Path, rows: Any, y: np.ndarray, names: Sequence[str] = HASHES
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the hashes in a plain profile, in a default export, and in the folder."""
    archive = Archive(folder / "own")
    record(archive, rows, y)
    archive.export(folder / "export.zip")
    received = Archive(folder / "received")
    received.import_(folder / "export.zip")
    plain = profile(rows, y)
    open_hashes = np.concatenate([getattr(plain, name) for name in names])
    return open_hashes, stored_hashes(received, names), stored_hashes(archive, names)


def attack_rows() -> list[str]:
    lines = []
    for name, (rows, guesses) in private_tables().items():
        y = RNG.integers(0, 2, len(rows))
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            found = [guess_rows(each, guesses) for each in views(Path(folder), rows, y)]
            seconds = time.perf_counter() - start
        counts = " | ".join(f"{n} of {len(rows)}" for n in found)
        lines.append(f"| {name} ({len(guesses):,} guesses, {seconds:.0f} s) | {counts} |")
    return lines


def attack_common_rows() -> str:
    """Count the patients whom two owners have in common, from what both of them share."""
    X = RNG.normal(size=(600, 4))
    y = RNG.integers(0, 2, 600)
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        found = zip(
            views(Path(one), X[:400], y[:400], ["fingerprint"]),
            views(Path(two), X[200:], y[200:], ["fingerprint"]),
            strict=True,
        )
        counts = [len(np.intersect1d(a, b)) for a, b in found]
    return "| common rows of two owners (of 200) | " + " | ".join(map(str, counts)) + " |"


def attack_labels() -> str:
    """Recognize the target among guesses by the digest that a search stores for resuming."""
    X, y = RNG.normal(size=(60, 4)), RNG.integers(0, 2, 60)
    guesses = {digest(y, code=True), digest(1 - y, code=True)}
    with tempfile.TemporaryDirectory() as folder:
        archive = Archive(Path(folder) / "own")
        space = {"max_depth": [1, 2, 3]}
        TransferSearchCV(DecisionTreeClassifier(), space, cv=2, archive=archive).fit(X, y)
        archive.export(Path(folder) / "a.zip")
        received = Archive(Path(folder) / "received")
        received.import_(Path(folder) / "a.zip")
        counts = [
            sum(guess in repr(task.resume) for task in each for guess in guesses)
            for each in (received, archive)
        ]
    return "| labels (digest of y) | 1 | " + " | ".join(map(str, counts)) + " |"


# -- sketches --------------------------------------------------------------------------------------


def standardize(x: np.ndarray) -> np.ndarray:
    return (x - x.mean(axis=0)) / x.std(axis=0)


def invert_sketch(target: dict[str, Any], y: np.ndarray, n: int, p: int) -> np.ndarray:
    """Fit a table to a sketch, from several starts. The attacker knows y."""

    def numbers(known: dict[str, Any] | None) -> np.ndarray:
        return np.array([*known["pairs"], *known["kernels"]]) if known else np.zeros(161)

    def residuals(flat: np.ndarray) -> np.ndarray:
        Z = standardize(flat.reshape(n, p))
        return numbers(sketch(Z, y[:, None].astype(float), True)) - numbers(target)

    best = None
    for seed in range(4):
        start = np.sort(np.random.default_rng(seed).normal(size=(n, p)), axis=0)
        fit = least_squares(residuals, start.ravel(), diff_step=1e-3, max_nfev=40)
        best = fit if best is None or fit.cost < best.cost else best
    assert best is not None
    return standardize(best.x.reshape(n, p))


def count_recovered(found: np.ndarray, Z: np.ndarray) -> int:
    """Count rows within 0.05 standard deviations, each used once."""
    free, n_found = [*found], 0
    for row in Z:
        distances = [np.abs(row - other).max() for other in free]
        nearest = int(np.argmin(distances)) if distances else 0
        if distances and distances[nearest] < 0.05:
            free.pop(nearest)
            n_found += 1
    return n_found


def attack_sketches() -> list[str]:
    lines = []
    for n, p in ((10, 1), (40, 1), (60, 3), (100, 1)):
        X = RNG.normal(size=(n, p))
        y = (np.arange(n) % 2).astype(int)
        whole = profile(X, y).to_dict()
        Z = standardize(X)
        by_chance = count_recovered(standardize(RNG.normal(size=(n, p))), Z)
        cells = []
        for known in (whole["sketch"], limit_disclosure(whole)["sketch"]):
            if known is None:
                cells.append("nothing is stored")
            else:
                cells.append(str(count_recovered(invert_sketch(known, y, n, p), Z)))
        lines.append(f"| {n} × {p} | {cells[0]} | {cells[1]} | {by_chance} |")
    return lines


def write_report(file: Path, attacks: Callable[[], list[str]] = attack_sketches) -> None:
    lines = ["# Attacks on stored and shared records\n", *__doc__.strip().split("\n")[:5], ""]
    lines += ["## Hashes\n", "Numbers are rows, common rows or labels that the attack found.\n"]
    lines += ["| attack | plain hashes | default export | folder without its key |"]
    lines += ["|---|---|---|---|", *attack_rows(), attack_common_rows(), attack_labels(), ""]
    lines += ["## Sketches\n"]
    lines += ["A table of standard normal columns is fitted to the sketch by least squares, from"]
    lines += [
        "four starts, with known labels. A row counts as found if all of its values are within"
    ]
    lines += [
        "0.05 standard deviations. *By chance*: the same count for a table drawn at random.\n"
    ]
    lines += ["| rows × columns | found from the whole sketch | from what is stored | by chance |"]
    lines += ["|---|---|---|---|", *attacks(), ""]
    file.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", type=Path, default=REPORT)
    write_report(parser.parse_args().report)


if __name__ == "__main__":
    main()
