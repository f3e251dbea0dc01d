"""Make `format-1.joblib`, a record of format 1, as the first version of the package wrote it.

The file is frozen: later versions must go on reading it. Run this only to see how it was made:

    python tests/archive/assets/make_format_1.py <new folder>
"""

import math
import sys
from pathlib import Path

import joblib

RECORD = {
    "trials": [
        {
            "params": {"svc__C": 1.0, "svc__kernel": "rbf"},
            "score": 0.875,
            "std": 0.0625,
            "fit_time": 0.25,
            "status": "ok",
            "metrics": {"f1": 0.75},
        },
        {
            "params": {"svc__C": 1000, "svc__kernel": None},
            "score": math.nan,
            "std": math.nan,
            "fit_time": 0.5,
            "status": "failed",
            "metrics": {"f1": math.nan},
        },
    ],
    "space": {
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
    "metrics": ["accuracy", "f1"],
    "profile": {"kind": "größe", "n_rows": 150, "sketch": [0.5, -1.25, 0.0], "numbers": [[2**63, -(2**63)]]},
    "id": "20250102T030405-0123456789abcdef",
    "created": "2025-01-02T03:04:05+00:00",
    "versions": {"python": "3.11.7", "numpy": "2.4.6"},
    "complete": False,
    "format": 1,
}

if __name__ == "__main__":
    joblib.dump(RECORD, Path(sys.argv[1]) / "format-1.joblib", protocol=4)
