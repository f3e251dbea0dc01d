"""The one door to torch: imported on first use, float64 on the CPU, one thread, no global state kept.

The matrices here are small: a second thread costs more than it brings, and would compete with the
workers that cross-validate.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_users = 0
_restore = contextlib.ExitStack()


@contextlib.contextmanager
def single_thread() -> Iterator[None]:
    """Run torch, and the BLAS below scipy, on one thread.

    The caller's settings are given back when the last of the threads that are in here leaves.
    """
    global _users
    with _lock:
        _users += 1
        if _users == 1:
            _restore.callback(torch.set_num_threads, torch.get_num_threads())
            torch.set_num_threads(1)
            _restore.enter_context(_blas().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _restore.close()


@lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    return ThreadpoolController()  # looks through the loaded libraries, so once is enough


def tensor(array: Any) -> torch.Tensor:
    """A float64 tensor on the CPU, sharing memory with the array where it can."""
    return torch.from_numpy(np.asarray(array, dtype=np.float64, order="C"))
