"""Make `format-1.joblib` and `format-1-checksum.joblib`, records of format 1.

The first is as the first version of the package wrote it. The second has a checksum, a field that readers
of the first kind ignore, and so the number is the same. The files are frozen: later versions must go on
reading them. Run this only to see how they were made:

    python tests/archive/assets/make_format_1.py <new folder>
"""

import math
import sys
from pathlib import Path

import joblib

from sktransfer.archive._files import dump
from sktransfer.archive._format import task_to_record
from sktransfer.task import Task, Trial


def make_task():
    return Task(
        trials=(
            Trial({"svc__C": 1.0, "svc__kernel": "rbf"}, 0.875, 0.0625, 0.25, "ok", {"f1": 0.75}),
            Trial({"svc__C": 1000, "svc__kernel": None}, math.nan, math.nan, 0.5, "failed", {"f1": math.nan}),
        ),
        space={
            "branches": [
                {
                    "svc__C": {"distribution": "loguniform", "args": [0.001, 1000.0], "kwds": {}},
                    "svc__kernel": {"values": ["rbf", None]},
                }
            ],
            "canonical": {"svc__C": "SVC.C", "svc__kernel": "SVC.kernel"},
            "fixed": {"SVC.degree": 3, "SVC.shrinking": True, "SVC.tol": 0.001},
            "predictors": ["SVC"],
        },
        metrics=("accuracy", "f1"),
        profile={"kind": "größe", "n_rows": 150, "sketch": [0.5, -1.25, 0.0], "numbers": [[2**63, -(2**63)]]},
        id="20250102T030405-0123456789abcdef",
        created="2025-01-02T03:04:05+00:00",
        versions={"python": "3.11.7", "numpy": "2.4.6"},
        complete=False,
        format=1,
    )


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    joblib.dump(task_to_record(make_task()), folder / "format-1.joblib", protocol=4)
    (folder / "format-1-checksum.joblib").write_bytes(dump(task_to_record(make_task())))
