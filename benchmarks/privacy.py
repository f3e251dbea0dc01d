"""Attacks on what is stored and shared: rows, values, labels and memberships.

The attacker knows the program and every possible value of a row. Each attack is run on three
things: on plain hashes, which the archive does not write (to show that the attack works); on a
default export; and on the archive's folder without its key. Writes docs/results/privacy.md.

    python -m benchmarks.privacy [--report FILE] [--only hashes memberships sketches]
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import least_squares
from sklearn.tree import DecisionTreeClassifier

from benchmarks.runner import make_parser, write_section
from sktransfer import Archive, Task, TransferSearchCV, profile
from sktransfer.archive import ArchiveKey
from sktransfer.archive._key import HASHES
from sktransfer.dataset import DatasetProfile
from sktransfer.dataset._disclosure import count_digits, limit_disclosure
from sktransfer.dataset._fingerprint import hash_rows
from sktransfer.dataset._sketch import sketch
from sktransfer.dataset._table import read_table
from sktransfer.utils._hashing import digest

REPORT = Path(__file__).parents[1] / "docs" / "results" / "privacy.md"
RNG = np.random.default_rng(0)
NAMES = [f"{first}.{last}" for first in ("ann", "bob", "eve") for last in map(str, range(3000))]


class Table(NamedTuple):
    """Private rows, all rows that the attacker tries, in parts, and their number."""

    rows: Any
    guesses: Sequence[Callable[[], np.ndarray]]
    n_guesses: int


def product(*axes: Any) -> np.ndarray:
    grid = np.meshgrid(*(np.asarray(axis, dtype=float) for axis in axes), indexing="ij")
    return np.column_stack([values.ravel() for values in grid])


def private_tables() -> dict[str, Table]:
    n_days = 65 * 365
    people = np.column_stack(
        [RNG.integers(0, n_days, 500), RNG.integers(0, 2, 500), RNG.integers(100, 1000, 500)]
    )
    bodies = product(range(18, 90), range(16, 45), range(90, 190, 2), [0, 1])
    salaries = product(range(20_000, 120_000, 10))
    mails = np.array([f"{name}@example.org" for name in NAMES], dtype=object)[:, None]
    guesses = [
        partial(product, range(day, min(day + 100, n_days)), [0, 1], range(100, 1000))
        for day in range(0, n_days, 100)
    ]
    return {
        "date of birth, sex, three digits of a postcode": Table(
            people.astype(float), guesses, n_days * 1800
        ),
        "age, BMI, blood pressure, sex": whole_table(bodies, 300),
        "a column of salaries": whole_table(salaries, 800),
        "mail addresses": whole_table(mails, 400),
    }


def whole_table(values: np.ndarray, n: int) -> Table:
    return Table(draw(values, n), [lambda: values], len(values))


def draw(values: np.ndarray, n: int) -> np.ndarray:
    return values[RNG.choice(len(values), n, replace=False)]


def stored_hashes(archive: Archive, names: Sequence[str] = HASHES) -> np.ndarray:
    """Every hash in the profiles of the records, or those of some fields."""
    profiles = [task.profile or {} for task in archive]
    parts = [part for each in profiles for part in (each, *each.get("enclosing", ()))]
    found = [number for part in parts for name in names for number in part.get(name, ())]
    return np.array(found, dtype=np.uint64)


def guess_rows(views: Sequence[np.ndarray], table: Table) -> list[int]:
    """Count the hashes that a guess explains, sealed with no key or with one of the attacker's."""
    own, found = ArchiveKey(bytes(32)), [0] * len(views)
    for part in table.guesses:
        hashed = hash_rows(read_table(part()))
        tried = np.concatenate([*hashed, own.seal(_with_hashes(hashed[0])).fingerprint])
        found = [n + len(np.intersect1d(each, tried)) for n, each in zip(found, views, strict=True)]
    return found


def _with_hashes(hashes: np.ndarray) -> DatasetProfile:
    return DatasetProfile("unsupervised", len(hashes), fingerprint=hashes)


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
    for name, table in private_tables().items():
        y = RNG.integers(0, 2, len(table.rows))
        with tempfile.TemporaryDirectory() as folder:
            seen = views(Path(folder), table.rows, y, ["fingerprint"])
        start = time.process_time()
        found = guess_rows(seen, table)
        seconds = time.process_time() - start
        counts = " | ".join(f"{n} of {len(table.rows)}" for n in found)
        lines.append(f"| {name} ({table.n_guesses:,} guesses, {seconds:.0f} s) | {counts} |")
    return lines


def attack_memberships() -> str:
    """Ask for 200 members of a table and 200 others whether their rows are in it."""
    X, y = RNG.normal(size=(400, 4)).round(1), RNG.integers(0, 2, 400)
    hashes = hash_rows(read_table(X))
    with tempfile.TemporaryDirectory() as folder:
        seen = views(Path(folder), X[:200], y[:200])
    known = [np.isin(hashes, each).any(axis=0) for each in seen]
    cells = [f"{each[:200].sum()} of 200 (others: {each[200:].sum()})" for each in known]
    return "| memberships | " + " | ".join(cells) + " |"


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
    """Find one label at a time by the digest of y that a search stores for resuming.

    The attacker knows all other labels, and tries both values of the one in question.
    """
    n = 500
    X, y = RNG.normal(size=(n, 4)), RNG.integers(0, 2, n)
    with tempfile.TemporaryDirectory() as folder:
        archive = Archive(Path(folder) / "own")
        search = TransferSearchCV(
            DecisionTreeClassifier(), {"max_depth": [1, 2, 3]}, cv=2, archive=archive
        )
        search.fit(X, y)
        archive.export(Path(folder) / "a.zip")
        received = Archive(Path(folder) / "received")
        received.import_(Path(folder) / "a.zip")
        texts = [digest(y, code=True)]
        texts += [repr([(t.resume, t.profile) for t in each]) for each in (received, archive)]
    counts = [0, 0, 0]
    for row in range(n):
        tried = [np.where(np.arange(n) == row, value, y) for value in (0, 1)]
        digests = [digest(each, code=True) for each in tried]
        for k, text in enumerate(texts):
            answers = [each in text for each in digests]
            counts[k] += sum(answers) == 1 and answers.index(True) == y[row]
    return "| single labels | " + " | ".join(f"{count} of {n}" for count in counts) + " |"


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
        fit = least_squares(
            residuals, start.ravel(), diff_step=1e-3, max_nfev=40 if n * p <= 100 else 12
        )
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


N_TABLES = 2


def attack_sketches() -> list[str]:
    lines = []
    for n, p in ((10, 1), (40, 1), (50, 3), (100, 1)):
        y = (np.arange(n) % 2).astype(int)
        counts: dict[str, list[int]] = {"whole": [], "stored": [], "chance": []}
        for _ in range(N_TABLES):
            X = RNG.normal(size=(n, p))
            whole = profile(X, y).to_dict()
            Z, stored = standardize(X), limit_disclosure(whole)["sketch"]
            chance = count_recovered(standardize(RNG.normal(size=(n, p))), Z)
            counts["chance"].append(chance)
            counts["whole"].append(count_recovered(invert_sketch(whole["sketch"], y, n, p), Z))
            if stored is not None:
                counts["stored"].append(count_recovered(invert_sketch(stored, y, n, p), Z))
        cells = [_join(each) if each else "nothing is stored" for each in counts.values()]
        lines.append(f"| {n} × {p} | {' | '.join(cells)} |")
    return lines


def _join(values: list[int]) -> str:
    return ", ".join(map(str, values))


# -- memberships by sketches -----------------------------------------------------------------------

N_REFERENCE, N_ATTACKED, N_ASKED, N_BASES = 300, 200, 4, 3


def sketch_numbers(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the numbers of the sketch as they are stored."""
    known = sketch(standardize(X), y[:, None].astype(float), True)
    assert known is not None
    return np.round([*known["pairs"], *known["kernels"]], count_digits(len(X)))


def draw_table(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    y = RNG.integers(0, 2, n)
    X = RNG.normal(size=(n, p))
    X[:, 0] += y
    return X, y


def attack_membership_by_sketch(n: int, p: int) -> str:
    """Tell members from others by a likelihood ratio of the stored numbers.

    The attacker knows the distribution of the rows. He simulates tables of it, and how their
    numbers move if a row takes the place of another.
    """
    reference = np.array([sketch_numbers(*draw_table(n, p)) for _ in range(N_REFERENCE)])
    center, scale = reference.mean(axis=0), reference.std(axis=0) + 1e-9
    covariance = np.cov(((reference - center) / scale).T)
    precision = np.linalg.inv(covariance + 0.3 * np.eye(len(center)))
    bases = [draw_table(n, p) for _ in range(N_BASES)]
    known = [sketch_numbers(*base) for base in bases]

    def shift(x: np.ndarray, label: int) -> np.ndarray:
        moved = []
        for (X, y), before in zip(bases, known, strict=True):
            X, y = np.vstack([x, X[1:]]), np.append(label, y[1:])
            moved.append((sketch_numbers(X, y) - before) / scale)
        return np.mean(moved, axis=0)

    areas = []
    for _ in range(N_ATTACKED):
        X, y = draw_table(n, p)
        weights = (sketch_numbers(X, y) - center) / scale @ precision
        others = zip(*draw_table(N_ASKED, p), strict=True)
        inside = np.array([weights @ shift(*row) for row in zip(X[:N_ASKED], y, strict=False)])
        outside = np.array([weights @ shift(*row) for row in others])
        areas.append((inside[:, None] > outside).mean())
    error = 1.96 * np.std(areas, ddof=1) / np.sqrt(N_ATTACKED)
    return f"| {n} × {p} | {np.mean(areas):.3f} ± {error:.3f} |"


def describe_hashes() -> list[str]:
    lines = ["Numbers are rows, common rows, labels or members that the attack found.", ""]
    lines += ["| attack | plain hashes | default export | folder without its key |"]
    lines += ["|---|---|---|---|", *attack_rows(), attack_memberships(), attack_common_rows()]
    return [*lines, attack_labels()]


def describe_sketches() -> list[str]:
    lines = [
        "A table of standard normal columns is fitted to the sketch by least squares, from four "
        "starts, with known labels. A row counts as found if all of its values are within 0.05 "
        "standard deviations. *By chance*: the same count for a table drawn at random. Each attack "
        f"was run on {N_TABLES} tables.",
        "",
        "| rows × columns | found from the whole sketch | from what is stored | by chance |",
    ]
    return [*lines, "|---|---|---|---|", *attack_sketches()]


def describe_memberships() -> list[str]:
    lines = [
        "The attacker knows the distribution from which the rows were drawn, and simulates the "
        "stored numbers of tables with and without the row in question. Of 50 rows, nothing is "
        "stored: that row shows what the attack finds in the numbers of so small a table. The area "
        f"under the ROC curve, {N_ATTACKED} tables, 95 %; chance is 0.5.",
        "",
        "| rows × columns | area |",
        "|---|---|",
    ]
    sizes = ((50, 3), (100, 1), (100, 3), (200, 5))
    return lines + [attack_membership_by_sketch(n, p) for n, p in sizes]


PARTS = {
    "hashes": ("## Hashes", describe_hashes),
    "memberships": ("## Memberships by sketches", describe_memberships),
    "sketches": ("## Sketches", describe_sketches),
}


def main() -> None:
    parser = make_parser(__doc__, "report")
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS))
    options = parser.parse_args()
    report = options.report or REPORT
    about = " ".join(__doc__.split("\n\n")[1].split()).removesuffix(
        " Writes docs/results/privacy.md."
    )
    write_section(
        report,
        "# Attacks on stored and shared records",
        [f"Made by `python -m benchmarks.privacy`. {about}"],
    )
    for name in options.only:
        heading, describe = PARTS[name]
        write_section(report, heading, describe())


if __name__ == "__main__":
    main()
