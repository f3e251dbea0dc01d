"""Inputs to the readers of an archive's files, chosen by what they reach, or at random.

    python -m benchmarks.fuzz [--seconds 60] [--seed 0] [--plain]

With atheris (`pip install atheris`), inputs are guided by the coverage of `sktransfer.archive`.
Without it, or with --plain, they are random bytes. The last line of the output is JSON: the number
of inputs by kind of file, how many files were refused, and what was found.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.runner import make_parser

PACKAGES = ["sktransfer.archive", "sktransfer.dataset._profile", "sktransfer.utils"]
KINDS = ("record", "journal", "index", "model", "ZIP")
FINDINGS = ("wrong", "other errors", "code run", "slow")
MAX_LENGTH = 200


def has_atheris() -> bool:
    return importlib.util.find_spec("atheris") is not None


def run_at_random(run: Callable[[bytes], None], seconds: float, seed: int) -> None:
    """Read random inputs for some seconds of CPU time."""
    rng, end = np.random.default_rng(seed), time.process_time() + seconds
    while time.process_time() < end:
        for length in rng.integers(1, MAX_LENGTH, 100).tolist():
            run(rng.bytes(length))


def run_guided(
    run: Callable[[bytes], None], seconds: float, seed: int, finish: Callable[[], None]
) -> None:
    """Read inputs of atheris for some seconds of CPU time, and end the process."""
    import atheris

    end = time.process_time() + seconds

    def run_until_end(data: bytes) -> None:
        run(data)
        if time.process_time() > end:
            finish()
            os._exit(0)  # atheris takes any other end for a finding

    arguments = [sys.argv[0], f"-seed={seed + 1}", f"-max_len={MAX_LENGTH}", "-verbosity=0"]
    atheris.Setup([*arguments, "-rss_limit_mb=0", "-timeout=60"], run_until_end)
    atheris.Fuzz()


def fuzz(seconds: float, seed: int, is_guided: bool) -> None:
    """Read inputs, and print the counts."""
    if is_guided:
        import atheris

        with atheris.instrument_imports(include=PACKAGES, enable_loader_override=False):
            from benchmarks.fuzz_readers import Readers
    else:
        from benchmarks.fuzz_readers import Readers

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        readers = Readers(Path(folder) / "files")

        def finish() -> None:
            found = {"guided": is_guided, "slowest": readers.slowest, **readers.counts}
            print(json.dumps(found), flush=True)
            shutil.rmtree(folder)

        if is_guided:
            run_guided(readers.run, seconds, seed, finish)
        run_at_random(readers.run, seconds, seed)
        finish()


def fuzz_in_new_process(seconds: float, seed: int = 0) -> dict[str, Any]:
    """Return the counts of a run."""
    command = [sys.executable, "-m", "benchmarks.fuzz", "--seconds", str(seconds)]
    command += ["--seed", str(seed)]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    return json.loads(ended.stdout.strip().rpartition("\n")[2])


def describe_fuzzing(seconds: float) -> tuple[list[str], bool]:
    """Run it; return the lines of the report, and whether there was a finding."""
    found = fuzz_in_new_process(seconds)
    n, way = sum(found.get(kind, 0) for kind in KINDS), "random"
    if found["guided"]:
        way = "guided by coverage (atheris)"
    lines = [
        f"Made by `python -m benchmarks.faults`, see `benchmarks/fuzz.py`: {n} inputs, {way}, in "
        f"{seconds:.0f} CPU seconds. Half of the files are damaged, half are forged, with valid "
        f"checksums. {found.get('refused', 0)} were refused with an error. The other inputs were "
        "accepted, or ignored, as an invalid index or model is. The slowest took "
        f"{found['slowest']:.2f} CPU seconds.",
        "",
        "| | |",
        "|---|---:|",
    ]
    lines += [f"| inputs to the reader: {kind} | {found.get(kind, 0)} |" for kind in KINDS]
    names = {
        "wrong": "damaged files that were read with other contents",
        "other errors": "errors other than those of a refused file",
        "code run": "programs or functions that a file ran",
        "slow": "files that took more than two seconds",
    }
    lines += [f"| {text} | {found.get(name, 0)} |" for name, text in names.items()]
    return lines, any(found.get(name) for name in FINDINGS)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plain", action="store_true", help="do without atheris")
    options = parser.parse_args()
    fuzz(options.seconds, options.seed, has_atheris() and not options.plain)


if __name__ == "__main__":
    main()
