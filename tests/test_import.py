"""`import sktransfer` is light: no torch, and hardly slower than the part of scikit-learn it stands on."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TIMED = "import time; start = time.process_time(); import {}; print(time.process_time() - start)"


def run(code):
    """What `code` prints in a fresh interpreter, which may keep its byte code."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_leaves_torch_alone():
    code = "import sktransfer, sys; assert 'torch' not in sys.modules, 'torch came with the import'"
    run(code)


def test_import_time():
    """Seconds of CPU of the fastest of five; taken in turns, so that a busy machine slows both alike."""
    modules = ("sktransfer", "sklearn.model_selection")
    rounds = [[float(run(TIMED.format(module))) for module in modules] for _ in range(5)]
    ours, theirs = map(min, zip(*rounds, strict=True))
    assert ours <= 1.3 * theirs, f"sktransfer takes {ours:.2f} s, sklearn.model_selection {theirs:.2f} s"
