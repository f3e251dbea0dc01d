"""Whether a change slowed the archive: two checkouts of the package, measured in turn in one run.

    git worktree add /tmp/before COMMIT
    python -m benchmarks.archive_change /tmp/before [--records 10000] [--report FILE]

Both versions fill an archive of their own, a thousand records at a time and in turn, and then
select from it in new processes, in turn. Times are CPU seconds, the fastest of several processes,
because a busy machine only ever makes a program slower.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.runner import format_page, make_parser, write_section

HERE = Path(__file__).parents[1]
N_SELECTS, CHUNK = 7, 1000
MAX_RATIO = 1.1
FILL = """
import json, sys, time
import numpy as np
from benchmarks.archive import make_task
from sktransfer import Archive
from sktransfer.dataset import profile
path, first, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng, archive, data, seconds = np.random.default_rng(first), Archive(path), [], []
for _ in range(10):
    X = rng.random((1500, 6))
    data.append(profile(X, (X[:, 0] > 0.5).astype(int)).to_dict())
for k in range(first, first + n):
    task = make_task(k, data)
    start = time.process_time()
    archive.append(task)
    seconds.append(time.process_time() - start)
print(json.dumps(float(np.median(seconds))))
"""
SELECT = "from benchmarks.archive import select_twice; import sys; select_twice(sys.argv[1])"


def run(checkout: Path, code: str, *arguments: object) -> list | float:
    """Return what a program prints that runs with the package of a checkout."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, cwd=checkout)
    return json.loads(ended.stdout)


def measure(checkouts: dict[str, Path], folder: Path, n_records: int) -> dict[str, list[float]]:
    """Return CPU seconds of append, and of a first and a second `select`, by version."""
    chunk = min(CHUNK, n_records)
    appends: dict[str, list] = {name: [] for name in checkouts}
    for first in range(0, n_records, chunk):
        for name, checkout in checkouts.items():
            appends[name].append(run(checkout, FILL, folder / name, first, chunk))
    selects: dict[str, list] = {name: [] for name in checkouts}
    for _ in range(N_SELECTS):
        for name, checkout in checkouts.items():
            cold, warm, *_ = run(checkout, SELECT, folder / name)
            selects[name].append((cold[1], warm[1]))
    # The first process writes what the index lacks, so it is not counted.
    return {
        name: [min(appends[name]), *np.min(selects[name][1:], axis=0).tolist()]
        for name in checkouts
    }


def main() -> None:
    parser = make_parser(__doc__, "report")
    parser.add_argument("before", type=Path)
    parser.add_argument("--records", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        checkouts = {"before": options.before, "now": HERE}
        found = measure(checkouts, Path(folder), options.records)
    lines = [
        "Made by `python -m benchmarks.archive_change CHECKOUT`, with a checkout of the commit "
    ]
    lines[0] += "before hashes were sealed with a key. Both versions are measured in turn. "
    lines[0] += f"{options.records} records, CPU seconds:"
    lines += [""]
    lines += ["| | before | now | ratio |", "|---|---:|---:|---:|"]
    names = ("append", "select, cold", "select, warm")
    for name, before, now in zip(names, found["before"], found["now"], strict=True):
        lines.append(f"| {name} | {before:.4f} | {now:.4f} | {now / before:.2f} |")
    missed = [
        name
        for name, before, now in zip(names, found["before"], found["now"], strict=True)
        if now > MAX_RATIO * before
    ]
    lines += ["", f"The limit is {MAX_RATIO:.2f}. It is missed by: {', '.join(missed) or 'none'}."]
    print(format_page(lines))
    if options.report:
        write_section(options.report, "## Compared with the archive without a key", lines)


if __name__ == "__main__":
    main()
