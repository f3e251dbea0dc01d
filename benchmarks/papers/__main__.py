"""Run an experiment of the papers; see `python -m benchmarks.papers --help`."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from benchmarks.data import data_folder
from benchmarks.evaluations import WORK
from benchmarks.papers._experiment import conduct

EXPERIMENTS = {"copula": "copula"}
"""Name -> module; a module has an `EXPERIMENT`."""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers",
        description="An experiment of the papers: every run as CSV, a figure, a table beside the paper's.",
    )
    parser.add_argument("name", choices=EXPERIMENTS)
    parser.add_argument("--seeds", type=int, help="number of seeds; the paper's unless given")
    parser.add_argument("--quick", action="store_true", help="some of the tasks only, for a look")
    parser.add_argument("--data", help="folder of the data (or SKTRANSFER_DATA)")
    parser.add_argument("--work", type=Path, default=WORK / "papers", help="folder of the runs that are done")
    parser.add_argument("--out", type=Path, default=Path("docs/results/papers"), help="folder of the results")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    experiment = import_module(f"benchmarks.papers.{EXPERIMENTS[options.name]}").EXPERIMENT
    seeds = options.seeds or (2 if options.quick else experiment.seeds)
    folder = data_folder(options.data)
    conduct(options.name, experiment, folder, options.work, options.out, seeds, options.quick, options.jobs)


if __name__ == "__main__":
    main()
