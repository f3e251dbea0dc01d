"""The one door to torch: imported on first use, float64 on the CPU, one thread, no global state kept.

The matrices here are small: a second thread costs more than it brings, and would compete with the
workers that cross-validate.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from threadpoolctl import ThreadpoolController


@contextlib.contextmanager
def single_thread() -> Iterator[None]:
    """Run torch, and the BLAS below scipy, on one thread, and give the caller's settings back."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with _blas().limit(limits=1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)


@lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    return ThreadpoolController()  # looks through the loaded libraries, so once is enough


def tensor(array: Any) -> torch.Tensor:
    """A float64 tensor on the CPU, sharing memory with the array where it can."""
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float64))
