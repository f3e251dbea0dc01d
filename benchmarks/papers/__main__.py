"""Run experiments of the papers; see `python -m benchmarks.papers --help`."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from benchmarks.data import data_place
from benchmarks.papers._experiment import Experiment, conduct
from benchmarks.papers._page import gather
from benchmarks.papers._times import add_time, cpu_seconds, write_times
from benchmarks.runner import RESULTS, WORK

EXPERIMENTS = {
    "distbo-toy": "distbo_toy",
    "distbo-counter": "distbo_counter",
    "distbo-protein": "distbo_protein",
    "distbo-parkinsons": "distbo_parkinsons",
    "distbo-appendix": "distbo_appendix",
    "dklm-sines": "dklm_sines",
    "dklm-tables": "dklm_tables",
    "dklm-landmarks": "dklm_landmarks",
    "yogatama": "yogatama",
    "yogatama-synthetic": "yogatama_synthetic",
    "yogatama-ensemble": "yogatama_ensemble",
    "ablr": "ablr",
    "ablr-quadratics": "ablr_quadratics",
    "ablr-embeddings": "ablr_embeddings",
    "copula": "copula",
}
"""Name -> module with an `EXPERIMENT`."""


def experiment_of(name: str) -> Experiment:
    """Return the experiment of a name."""
    return import_module(f"benchmarks.papers.{EXPERIMENTS[name]}").EXPERIMENT


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers",
        description="Experiments of the papers: packed runs, a figure, and tables.",
    )
    parser.add_argument(
        "name", choices=[*EXPERIMENTS, "all", "page"], help="'page' only collects the results"
    )
    parser.add_argument(
        "--seeds",
        type=int,
        help="number of seeds; default: that of the paper, 1 with --quick",
    )
    parser.add_argument("--quick", action="store_true", help="only some of the tasks, for a test")
    parser.add_argument(
        "--done", action="store_true", help="run nothing, only report finished runs"
    )
    parser.add_argument("--data", help="folder of the data (or SKTRANSFER_DATA)")
    parser.add_argument(
        "--work", type=Path, default=WORK / "papers", help="folder of unfinished runs"
    )
    parser.add_argument(
        "--out",
        type=Path,
        help=f"folder of the results; {RESULTS}/papers, with --quick 'quick' in the work folder",
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--times", type=Path, help="page in which a section gets the CPU time of each experiment"
    )
    options = parser.parse_args(given)
    if options.seeds is not None and options.seeds < 1:
        parser.error("--seeds must be at least 1")
    if options.out is None:
        options.out = options.work / "quick" if options.quick else RESULTS / "papers"
    return options


def main(given: list[str] | None = None) -> None:
    """Run the experiments of the command line, and collect all results."""
    options = arguments(given)
    folder, skipped = data_place(options.data), []
    names = (
        list(EXPERIMENTS) if options.name == "all" else [options.name] * (options.name != "page")
    )
    for name in names:
        experiment = experiment_of(name)
        if missing := experiment.missing(folder):
            reason = f"{name} needs {', '.join(missing)} in {folder}, which does not exist."
            if options.name != "all":
                raise SystemExit(
                    f"{reason} Pass the data folder with --data or set SKTRANSFER_DATA."
                )
            skipped.append(reason)
            continue
        print(f"== {name}", flush=True)
        seeds = options.seeds or (1 if options.quick else experiment.seeds)
        size = (seeds, options.quick, options.jobs, options.done)
        begun = cpu_seconds()
        conduct(name, experiment, folder, options.work, options.out, *size)
        add_time(options.work, options.quick, name, cpu_seconds() - begun)
    print(f"All results: {gather(options.out, list(EXPERIMENTS))}")
    if options.times is not None:
        write_times(options.times, options.work, options.quick, list(EXPERIMENTS))
    if skipped:
        raise SystemExit(
            "\n".join(
                ["Left out:", *skipped, "Pass the data folder with --data or set SKTRANSFER_DATA."]
            )
        )


if __name__ == "__main__":
    main()
