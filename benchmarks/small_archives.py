"""Searches that learn from one, two, three or five past searches, beside searches without any.

    OMP_NUM_THREADS=1 python -m benchmarks.small_archives --report docs/results/small_archives.md

A past search is one of the package without an archive, 20 trials long, on a data set of another
family than the target's. "Own archive" has these past searches only, "with the starter archive" has
those that ship with the package as well, without the target's family. Both are compared with the
search without an archive of the same seed, by the best score after some trials.

The problem "selection + SVC" tunes a parameter that no past search has, how many columns to keep:
past searches tuned the SVC alone. "SVC, no pretraining" runs without the pretrained model, as
estimators do that it does not know. LightGBM is one of these.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks import pools
from benchmarks.data import data_folder
from benchmarks.first_trial import seed_of
from benchmarks.peers import data_of
from benchmarks.runner import (
    RESULTS,
    format_page,
    make_parser,
    markdown_table,
    packed_file,
    run_all,
    update_runs,
)
from benchmarks.small_archive_problems import (
    MAX_ROWS,
    N_FOLDS,
    SCORING,
    TARGET_PROBLEMS,
    evaluate,
    load,
    problems,
    profile_of,
    search,
    space_of,
)
from benchmarks.small_archive_report import (
    AT,
    NONE,
    best_after,
    collect,
    count_behind,
    write_defaults,
    write_differences,
    write_noise,
    write_worst,
)
from sktransfer import Archive, Task

KIND = "classification"
N_TRIALS, N_PAST_TRIALS = 15, 20
N_TARGETS, N_SEEDS, N_NOISE_SEEDS = 12, 1, 2
N_PAST = (1, 2, 3, 5)
N_WITH_STARTER = (1, 5)
OWN, STARTER, PAST = "own archive", "with the starter archive", "past search"
DEFAULTS = "the estimator's own settings"
PAGE = RESULTS / "small_archives.md"
FIELDS = ("problem", "data", "archive", "n_past", "seed")
STORE = "small-archives.jsonl"
COMMAND = (
    "OMP_NUM_THREADS=1 python -m benchmarks.small_archives --seeds 2 "
    "--report docs/results/small_archives.md"
)


def targets(split: str, folder: Path) -> list[str]:
    """One data set of each family of a split, N_TARGETS in all."""
    family = pools.family_of(KIND, folder)
    first = {family[name]: name for name in reversed(pools.targets(KIND, split, folder))}
    return sorted(first.values())[:N_TARGETS]


def run(
    problem: str,
    data: str,
    archive: str,
    n_past: int,
    seed: int,
    past: Sequence[Task],
    folder: Path,
) -> dict[str, Any]:
    """One search; past searches are longer and keep their configurations."""
    if archive == DEFAULTS:
        return {"scores": [evaluate(problem, {}, *load(data, folder))]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        n_trials = N_PAST_TRIALS if archive == PAST else N_TRIALS
        found = search(problem, data, past, folder, seed, n_trials)
    return found if archive == PAST else {name: found[name] for name in ("scores", "origins")}


class Comparison:
    """All searches of a split.

    Parameters
    ----------
    split : {"development", "report"}
    folder : Path
        Of the data sets.
    work : Path
        Of unfinished runs.
    jobs : int
    """

    def __init__(self, split: str, folder: Path, work: Path, jobs: int):
        self._folder, self._work, self._jobs = folder, work, jobs
        self.family = pools.family_of(KIND, folder)
        self.targets = targets(split, folder)
        # A past search may be on any other family.
        self._sources = sorted({*targets("development", folder), *targets("report", folder)})
        self.past_rows: list[dict[str, Any]] = []
        self.default_rows: list[dict[str, Any]] = []
        self.noise_rows: list[dict[str, Any]] = []
        self._past: dict[tuple[str, str], dict[str, Any]] = {}

    def run(
        self, names: Sequence[str], archives: Sequence[str], n_seeds: int
    ) -> list[dict[str, Any]]:
        """Rows of all searches on the targets; the past searches are made first."""
        sources = dict.fromkeys(problems()[name].past for name in names)
        keys = [(p, data, PAST, 0, 0) for p in sources for data in self._sources]
        self.past_rows = self._run(keys)
        self._past = {(row["problem"], row["data"]): row for row in self.past_rows}
        keys = [(name, data, DEFAULTS, 0, 0) for name in names for data in self.targets]
        self.default_rows = self._run(keys)
        keys = [
            (name, data, NONE, 0, seed)
            for seed in range(N_NOISE_SEEDS)
            for name in names
            for data in self.targets
        ]
        self.noise_rows = self._run(keys)
        keys = [
            (name, data, archive, n, seed)
            for seed in range(n_seeds)
            for name in names
            for data in self.targets
            for archive, n in cases(name, archives)
        ]
        return self._run(keys)

    def _run(self, keys: list[tuple]) -> list[dict[str, Any]]:
        store = self._work / STORE
        return run_all(store, FIELDS, keys, run, self._jobs, self._arguments, packed_file(PAGE))

    def _arguments(self, key: tuple) -> tuple:
        return self._tasks(*key), self._folder

    def _tasks(self, problem: str, data: str, archive: str, n_past: int, seed: int) -> list[Task]:
        others = [name for name in self._sources if self.family[name] != self.family[data]]
        order = np.random.default_rng([seed, seed_of(data)]).permutation(len(others))
        source = problems()[problem].past
        tasks = [self._task(self._past[source, others[i]]) for i in order[:n_past]]
        return tasks + (self._starter(problem, data) if archive == STARTER else [])

    def _task(self, row: Mapping[str, Any]) -> Task:
        trials = list(zip(row["trials"], row["scores"], strict=True))
        data = profile_of(row["data"], self._folder)
        space = space_of(row["problem"])
        return Task.from_trials(space, trials, data, metrics=[SCORING], id=row["data"])

    def _starter(self, problem: str, data: str) -> list[Task]:
        with TemporaryDirectory() as empty, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            archive = Archive(empty, readonly=True, starter=True)
            found = archive.select(space_of(problem), profile_of(data, self._folder))
            tasks = found.loaded().used
        return [task for task in tasks if self.family.get(data_of(task)) != self.family[data]]


def cases(problem: str, archives: Sequence[str]) -> list[tuple[str, int]]:
    """Archives and numbers of past searches that are compared."""
    found = [(NONE, 0), *((OWN, n) for n in N_PAST if OWN in archives)]
    has_starter = STARTER in archives and problems()[problem].has_starter
    return found + [(STARTER, n) for n in N_WITH_STARTER if has_starter]


def write_page(page: Path, rows: Sequence[Mapping[str, Any]], comparison: Comparison) -> None:
    """Write the page, and pack the single runs beside it."""
    cases, n_seeds = collect(rows), len({row["seed"] for row in rows})
    without = {
        name: np.mean([best_after(r) for r in rows if r["problem"] == name and r["n_past"] == 0], 0)
        for name in dict.fromkeys(row["problem"] for row in rows)
    }
    behind = count_behind(cases)
    lines = [
        "# Small archives",
        "",
        (__doc__ or "").split("\n\n", 2)[2].strip(),
        "",
        "```",
        COMMAND,
        "```",
        "",
        f"{len(comparison.targets)} data sets of as many families (split: report), at most "
        f"{MAX_ROWS} rows, {SCORING.replace('_', ' ')} in {N_FOLDS} folds, {n_seeds} seed(s). "
        "Differences are those of the best score so far to the search without an archive, with "
        "95 % intervals over data sets. The search without an archive scores:",
        "",
        *markdown_table(
            ["problem", *map(str, AT)],
            [[name, *(f"{z:.3f}" for z in values)] for name, values in without.items()],
        ),
        "",
        "## Differences after some trials",
        "",
        *write_differences(cases),
        "",
        f"Behind beyond the noise: {'; '.join(behind) or 'none'}. There are "
        f"{len(cases) * len(AT)} intervals.",
        "",
        "## Single cases",
        "",
        *write_worst(cases),
        "",
        "How far two seeds of the search without an archive are apart after ten trials, which is "
        "the noise of a single case:",
        "",
        *write_noise(comparison.noise_rows),
        "",
        "## The estimator's own settings",
        "",
        "Whether the search without an archive should try the estimator's own settings first. "
        "*Differences* are those of the best score so far if they were trial 1 and the others came "
        "one trial later, to the search as it is.",
        "",
        *write_defaults(rows, comparison.default_rows),
    ]
    notes = page.with_name(f"{page.stem}-notes.md")
    lines += ["", notes.read_text().strip()] if notes.exists() else []
    page.write_text(format_page(lines))
    every = [*comparison.past_rows, *comparison.default_rows, *comparison.noise_rows]
    every += [row for row in rows if row["archive"] != NONE or row["seed"] >= N_NOISE_SEEDS]
    update_runs(every, packed_file(page), FIELDS)


def main() -> None:
    parser = make_parser(__doc__, "data", "work", "split", "jobs", "report")
    parser.add_argument("--problems", nargs="+", choices=list(problems()), default=TARGET_PROBLEMS)
    parser.add_argument("--archives", nargs="+", choices=[OWN, STARTER], default=[OWN, STARTER])
    parser.add_argument("--seeds", type=int, default=N_SEEDS)
    options = parser.parse_args()
    folder = data_folder(options.data)
    comparison = Comparison(options.split, folder, options.work, options.jobs)
    rows = comparison.run(options.problems, options.archives, options.seeds)
    print("\n".join([*write_differences(collect(rows)), "", *write_worst(collect(rows))]))
    if options.report:
        write_page(options.report, rows, comparison)


if __name__ == "__main__":
    main()
