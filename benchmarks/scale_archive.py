"""Archives of up to ten thousand records: the time and memory of everything that reads them.

    python -m benchmarks.scale_archive [--sizes 100 1000 10000] [--report FILE]

All records are searches of one estimator, of 50 trials each, on data sets of their own, so that
every record could be used for every target. Each figure is measured in a new process, in CPU
seconds, with the peak of its memory. "First" means that the archive has neither an index nor a
cached model, "new data" a later search on other data, and "same data" one that was run before. A
fit has one trial, and the seconds include the profile of the data and the record.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from copy import deepcopy
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.stats import loguniform
from sklearn.svm import SVC

from benchmarks.runner import format_page, make_parser, write_section
from sktransfer import Archive, TransferSearchCV, profile
from sktransfer.space import Space
from sktransfer.task import Task, Trial

SIZES = (100, 1000, 10_000)
N_TRIALS, N_ROWS, N_BASES = 50, 300, 40
SPACE = {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-5, 10)}
FIRST_LIMITS: dict[int, float] = {100: 3, 1000: 6, 10_000: 20}
LATER_LIMITS: dict[int, float] = {100: 0.2, 1000: 0.3, 10_000: 0.5}
MAX_MEGABYTES = 1024
MAX_GROWTH = 1.2  # of seconds, relative to that of the records: two runs differ by as much
MIN_SECONDS = 0.05  # below which the growth of a time is not judged


def make_data(seed: int, n: int = N_ROWS) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = int(rng.integers(3, 20))
    X = rng.normal(size=(n, p)) * rng.lognormal(size=p)
    return X, (X @ rng.normal(size=p) + rng.normal(size=n) > 0).astype(int)


def fill(path: Path, n_records: int) -> None:
    """Append records. Their profiles are those of a few data sets with other numbers and hashes."""
    bases = [profile(*make_data(seed)).to_dict() for seed in range(N_BASES)]
    space, archive = Space.parse(SPACE, SVC()), Archive(path)
    described = space.describe()
    for n in range(n_records):
        rng = np.random.default_rng([7, n])
        data = deepcopy(bases[n % N_BASES])
        for part in ("meta_features", "response_curves", "scales"):
            names = list(data[part])
            values = np.array(list(data[part].values())) + rng.normal(scale=0.05, size=len(names))
            data[part] = dict(zip(names, values.tolist(), strict=True))
        for part in ("fingerprint", "ordered_fingerprint", "pattern_fingerprint"):
            data[part] = np.sort(rng.integers(0, 2**63, len(data[part]))).tolist()
        params = space.sample(N_TRIALS, rng)
        codes, best = space.encode(params), rng.normal([0.6, 0.5], 0.15)
        scores = 0.9 - ((codes - best) ** 2).sum(axis=1) + rng.normal(scale=0.01, size=N_TRIALS)
        trials = tuple(Trial.make(*each) for each in zip(params, scores.tolist(), strict=True))
        archive.append(Task(trials=trials, space=described, profile=data, metrics=("accuracy",)))


# -- what is measured, each in a process of its own ------------------------------------------------


def fit(path: str, seed: str, resume: str = "") -> None:
    search = TransferSearchCV(
        SVC(), SPACE, n_iter=1, cv=3, archive=path, random_state=0, resume=bool(resume)
    )
    search.fit(*make_data(int(seed)))


def select(path: str) -> None:
    Archive(path).select(Space.parse(SPACE, SVC()), profile(*make_data(10_001)))


def iterate(path: str) -> None:
    for _ in Archive(path):
        pass


def merge(path: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Archive(folder).merge(path)


def ls(path: str) -> None:
    Archive(path).summaries()


MEASURED: dict[str, Callable[..., None]] = {
    "fit": fit,
    "select": select,
    "iterate": iterate,
    "merge": merge,
    "ls": ls,
}


def measure_here(name: str, *arguments: str) -> None:
    """Measure one function, twice for `select`, and print seconds and megabytes."""
    function, seconds = MEASURED[name], []
    if name == "fit":  # imports, and what a process does once
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit(folder, "10000")
    for _ in range(2 if name == "select" else 1):
        start = time.process_time()
        function(*arguments)
        seconds.append(time.process_time() - start)
    status = Path("/proc/self/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    print("\n" + json.dumps([*seconds, peak]))


def measure(name: str, *arguments: object) -> list[float]:
    """Measure a function in a new process."""
    command = [sys.executable, "-m", "benchmarks.scale_archive", "--measure", name]
    command += list(map(str, arguments))
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(ended.stdout.splitlines()[-1])


def forget(path: Path) -> None:
    """Remove what is cached in an archive."""
    for folder in ("index", "models"):
        shutil.rmtree(path / folder, ignore_errors=True)


def measure_size(path: Path) -> dict[str, tuple[float, float]]:
    """Return CPU seconds and megabytes of everything, for an archive of one size."""
    found: dict[str, tuple[float, float]] = {}

    def add(label: str, measured: list[float]) -> None:
        found[label] = measured[-2], measured[-1]

    forget(path)
    add("first fit", measure("fit", path, 10_001))
    add("fit, new data", measure("fit", path, 10_002))
    add("fit, same data", measure("fit", path, 10_002))
    add("fit, new data, `resume=True`", measure("fit", path, 10_003, "resume"))
    forget(path)
    first = measure("select", path)
    found["select, no index"] = first[0], first[-1]
    cold, warm, peak = measure("select", path)
    found |= {"select, cold": (cold, peak), "select, warm": (warm, peak)}
    for name in ("iterate", "ls", "merge"):
        add(name, measure(name, path))
    return found


def report(found: dict[int, dict[str, tuple[float, float]]]) -> list[str]:
    """Return the lines of the section of results."""
    sizes = list(found)
    lines = [
        "Made by `python -m benchmarks.scale_archive`: CPU seconds, and the peak of memory in "
    ]
    lines[0] += f"megabytes. Records have {N_TRIALS} trials of one estimator."
    lines += ["", "| | " + " | ".join(f"{size} records" for size in sizes) + " |"]
    lines += ["|---|" + "---:|" * len(sizes)]
    for name in found[sizes[0]]:
        cells = [f"{found[size][name][0]:.2f} s, {found[size][name][1]:.0f}" for size in sizes]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    first = ", ".join(f"{FIRST_LIMITS[size]}" for size in sizes if size in FIRST_LIMITS)
    later = ", ".join(f"{LATER_LIMITS[size]}" for size in sizes if size in LATER_LIMITS)
    lines += ["", f"Limits: first fit {first} s, later fits {later} s, {MAX_MEGABYTES} MB."]
    lines += [
        "",
        judge("First fits", "first fit", FIRST_LIMITS, found)
        + " A first fit reads all records once, to make the index.",
        "",
        judge("Later fits", "fit, new data", LATER_LIMITS, found)
        + " With few records, the profile of the data and the fit to the most similar past tasks "
        "take most of a later fit, with thousands the list of the records and the index.",
        "",
        "`select` as such compares the rows of all past tasks, and reads those records whose "
        "overlap the index cannot rule out: it holds the rows of about 500. So it reads nearly all "
        "of these records, once per process, but keeps none of their profiles. A search compares "
        "only those that it uses.",
        "",
        judge_growth(found),
    ]
    return lines


def judge_growth(found: dict[int, dict[str, tuple[float, float]]]) -> str:
    """Return a sentence on what takes longer than in proportion to the number of records."""
    faster = [
        f"{name} ({found[large][name][0] / seconds:.0f} times from {small} to {large} records)"
        for small, large in pairwise(sorted(found))
        for name, (seconds, _) in found[small].items()
        if found[large][name][0] > MAX_GROWTH * large / small * max(seconds, MIN_SECONDS)
    ]
    aim = "Nothing was to grow faster than the number of records"
    return f"{aim}: **missed** by {', '.join(faster)}." if faster else f"{aim}: met."


def judge(
    title: str,
    name: str,
    limits: dict[int, float],
    found: dict[int, dict[str, tuple[float, float]]],
) -> str:
    """Return a sentence on how many of the limits are met."""
    missed = [
        f"{found[size][name][0]:.2f} s in place of {limit} s with {size} records"
        for size, limit in limits.items()
        if size in found and found[size][name][0] > limit
    ]
    return f"{title} {'**miss** a limit: ' + ', '.join(missed) if missed else 'are within limits'}."


def main() -> None:
    parser = make_parser(__doc__, "report")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--keep", type=Path, help="folder in which the archives are made and kept")
    parser.add_argument("--measure", nargs="+")
    options = parser.parse_args()
    if options.measure:
        measure_here(*options.measure)
        return
    found = {}
    with tempfile.TemporaryDirectory() as temporary:
        for size in options.sizes:
            source = (options.keep or Path(temporary)) / f"{size}"
            if not source.exists():
                fill(source, size)
            path = Path(temporary) / f"copy-{size}"
            shutil.copytree(source, path)
            found[size] = measure_size(path)
            print(size, found[size], flush=True)
            shutil.rmtree(path)
            lines = report(found)
            if options.report:
                write_section(options.report, "# Large archives", lines)
    print(format_page(lines))


if __name__ == "__main__":
    main()
