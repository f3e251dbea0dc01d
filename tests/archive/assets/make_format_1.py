"""Make `format-1.joblib`, a record of format 1, without any code of the package.

The file is frozen: later versions must be able to read it. Run this only to see how it was made:

    python tests/archive/assets/make_format_1.py <new folder>
"""

import base64
import hashlib
import math
import pickle
import struct
import sys
from pathlib import Path

hashes = struct.pack("<20Q", *(2**64 - n for n in range(1, 21)))
sketch = struct.pack("<20d", *(n / 8 for n in range(20)))

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
    "profile": {
        "kind": "größe",
        "n_rows": 150,
        "fingerprint": "packed:int:" + base64.b64encode(hashes).decode(),
        "key": "0123456789abcdef",
        "sketch": {
            "format": 1,
            "pairs": "packed:float:" + base64.b64encode(sketch).decode(),
        },
        "numbers": [[2**63, -(2**63)]],
        "text": "packed:text:packed:",
    },
    "id": "20250102T030405-0123456789abcdef",
    "created": "2025-01-02T03:04:05+00:00",
    "versions": {"python": "3.11.7", "numpy": "2.4.6"},
    "complete": False,
    "format": 1,
    "resume": {
        "problem": {"the data": "0123"},
        "seed": 5,
        "folds": [[[0.25, 0.5, 50, None, 0.875, None]]],
    },
    "origin": "imported from a.zip",
    "checksum": "blake2b:" + "0" * 32,
}

if __name__ == "__main__":
    data = pickle.dumps(RECORD, protocol=4)
    # The digits come before MEMOIZE, SETITEMS and STOP, and are the hash of all other bytes.
    start, end = data[: -3 - 32], data[-3:]
    digits = hashlib.blake2b(start + end, digest_size=16).hexdigest().encode()
    (Path(sys.argv[1]) / "format-1.joblib").write_bytes(start + digits + end)
