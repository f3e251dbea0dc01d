"""Regression check: do 169 recorded searches still propose the same configurations?

A rebuild of the package must not change its behavior. This program runs small searches through
public names only: every surrogate, all kinds of spaces, with and without archives, batches, failing
fits, interrupted and resumed searches, suggestions, ask and tell. ``record`` stores their proposals
and outcomes. ``check`` runs the searches again and lists the differences.

    python -m benchmarks.same_proposals record     # writes benchmarks/assets/proposals.json.gz
    python -m benchmarks.same_proposals check      # exit code 1 if there are unlisted differences
"""

from __future__ import annotations

import gzip
import json
import math
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

from benchmarks.recorded_searches import cases, grow_archives
from benchmarks.runner import make_parser

RECORDING = Path(__file__).parent / "assets" / "proposals.json.gz"

DECIDED: dict[str, str] = {}
"""Cases that differ from the recording by a decision, which is the value."""


def run_all(only):
    """Return the outcome of each case, run in one process with temporary archives."""
    results = {}
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        os.environ["SKTRANSFER_ARCHIVE"] = str(folder / "user")
        grow_archives(folder)
        for case, run in cases().items():
            if only not in case:
                continue
            start = time.monotonic()
            try:
                results[case] = run(folder)
            except Exception as error:  # a failure counts as a difference, other cases continue
                results[case] = {"error": repr(error)}
            print(f"{case:32} {time.monotonic() - start:6.1f} s", file=sys.stderr, flush=True)
    return results


def differs(old, new, tolerance):
    """Return a description of the first difference between two outcomes, or None."""
    if isinstance(old, dict) and isinstance(new, dict):
        if old.keys() != new.keys():
            return f"fields {sorted(old.keys() ^ new.keys())}"
        return next((f"{k}: {d}" for k in old if (d := differs(old[k], new[k], tolerance))), None)
    if isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            return f"{len(old)} and {len(new)} entries"
        pairs = enumerate(zip(old, new, strict=True))
        return next((f"[{i}] {d}" for i, (a, b) in pairs if (d := differs(a, b, tolerance))), None)
    if isinstance(old, float) and isinstance(new, (int, float)):
        same = (
            old == new
            or (math.isnan(old) and math.isnan(new))
            or math.isclose(old, new, rel_tol=tolerance)
        )
        return None if same else f"{old!r} became {new!r}"
    return None if old == new else f"{old!r} became {new!r}"


def check(only):
    """Print the differences from the recording; return the number of unlisted ones."""
    recorded = json.loads(gzip.decompress(RECORDING.read_bytes()))
    again = json.loads(json.dumps(run_all(only)))
    exact = close = decided = 0
    missing = [] if only else sorted(recorded.keys() - again.keys())
    for case in missing:
        print(f"{case}: recorded, but not run")
    for case, new in again.items():
        old = recorded.get(case)
        if old is None:
            print(f"{case}: not recorded")
        elif differs(old, new, 0.0) is None:
            exact += 1
        elif differs(old, new, 1e-6) is None:
            close += 1
        elif case in DECIDED:
            decided += 1
            print(f"{case}: {differs(old, new, 1e-6)} ({DECIDED[case]})")
        else:
            print(f"{case}: {differs(old, new, 1e-6)}")
    left = len(again) - exact - close - decided
    print(
        f"{len(again)} searches: {exact} the same to the last bit, {close} within 1e-6, "
        f"{decided} changed by a decision, {left} changed otherwise"
    )
    return left + len(missing)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("command", choices=["record", "check"])
    parser.add_argument("--only", default="", help="run only cases whose name contains this text")
    given = parser.parse_args()
    if given.command == "check":
        sys.exit(bool(check(given.only)))
    RECORDING.parent.mkdir(exist_ok=True)
    text = json.dumps(run_all(given.only), sort_keys=True)
    RECORDING.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
