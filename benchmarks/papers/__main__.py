"""Run experiments of the papers; see `python -m benchmarks.papers --help`."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from benchmarks.data import data_place
from benchmarks.evaluations import WORK
from benchmarks.papers._experiment import Experiment, conduct
from benchmarks.papers._page import gather

EXPERIMENTS = {
    "distbo-toy": "distbo_toy",
    "distbo-counter": "distbo_counter",
    "distbo-protein": "distbo_protein",
    "distbo-parkinsons": "distbo_parkinsons",
    "dklm-sines": "dklm_sines",
    "dklm-tables": "dklm_tables",
    "yogatama": "yogatama",
    "ablr": "ablr",
    "copula": "copula",
}
"""Name -> module; a module has an `EXPERIMENT`."""

RESULTS = Path("docs/results")


def experiment_of(name: str) -> Experiment:
    return import_module(f"benchmarks.papers.{EXPERIMENTS[name]}").EXPERIMENT


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers",
        description="Experiments of the papers: every run as CSV, a figure, a table beside the paper's.",
    )
    parser.add_argument(
        "name", choices=[*EXPERIMENTS, "all", "page"], help="'page' only gathers the results"
    )
    parser.add_argument(
        "--seeds",
        type=int,
        help="number of seeds; as many as the paper has unless given, 1 with --quick",
    )
    parser.add_argument("--quick", action="store_true", help="some of the tasks only, for a look")
    parser.add_argument(
        "--done", action="store_true", help="run nothing: the results of the runs that are done"
    )
    parser.add_argument("--data", help="folder of the data (or SKTRANSFER_DATA)")
    parser.add_argument(
        "--work", type=Path, default=WORK / "papers", help="folder of the runs that are done"
    )
    parser.add_argument(
        "--out",
        type=Path,
        help=f"folder of the results; {RESULTS}/papers, with --quick 'quick' in the work folder",
    )
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(given)
    if options.seeds is not None and options.seeds < 1:
        parser.error("--seeds must be at least 1")
    if options.out is None:
        options.out = options.work / "quick" if options.quick else RESULTS / "papers"
    return options


def main(given: list[str] | None = None) -> None:
    options = arguments(given)
    folder, skipped = data_place(options.data), []
    names = (
        list(EXPERIMENTS) if options.name == "all" else [options.name] * (options.name != "page")
    )
    for name in names:
        experiment = experiment_of(name)
        if missing := experiment.missing(folder):
            reason = f"{name} needs {', '.join(missing)} in {folder}, which is not there."
            if options.name != "all":
                raise SystemExit(f"{reason} Name the data folder with --data or SKTRANSFER_DATA.")
            skipped.append(reason)
            continue
        print(f"== {name}", flush=True)
        seeds = options.seeds or (1 if options.quick else experiment.seeds)
        size = (seeds, options.quick, options.jobs, options.done)
        conduct(name, experiment, folder, options.work, options.out, *size)
    print(f"All results: {gather(options.out, list(EXPERIMENTS))}")
    if skipped:
        raise SystemExit(
            "\n".join(
                ["Left out:", *skipped, "Name the data folder with --data or SKTRANSFER_DATA."]
            )
        )


if __name__ == "__main__":
    main()
