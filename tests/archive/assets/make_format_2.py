"""Make `format-2.joblib`: the record of format 1 with packed numbers, facts for resuming and a checksum.

The file is frozen: later versions must go on reading it. Run this only to see how it was made:

    python tests/archive/assets/make_format_2.py <new folder>
"""

import base64
import hashlib
import pickle
import runpy
import struct
import sys
from pathlib import Path

FIRST = runpy.run_path(str(Path(__file__).with_name("make_format_1.py")))["RECORD"]

hashes = struct.pack("<20Q", *(2**64 - n for n in range(1, 21)))
sketch = struct.pack("<20d", *(n / 7 for n in range(20)))

RECORD = {
    **FIRST,
    "profile": {
        **FIRST["profile"],
        "fingerprint": "packed:int:" + base64.b64encode(hashes).decode(),
        "sketch": "packed:float:" + base64.b64encode(sketch).decode(),
    },
    "format": 2,
    "resume": {"problem": {"the data": "0123"}, "seed": 5, "folds": [[[0.25, 0.5, 50, None, 0.875, None]]]},
    "checksum": "blake2b:" + "0" * 32,
}

if __name__ == "__main__":
    data = pickle.dumps(RECORD, protocol=4)
    # The digits stand before MEMOIZE, SETITEMS and STOP, and are the hash of all bytes but themselves.
    start, end = data[: -3 - 32], data[-3:]
    digits = hashlib.blake2b(start + end, digest_size=16).hexdigest().encode()
    (Path(sys.argv[1]) / "format-2.joblib").write_bytes(start + digits + end)
