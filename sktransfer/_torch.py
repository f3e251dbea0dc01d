"""The one door to torch: imported on first use, float64 on the CPU, one thread, no global state kept.

The matrices here are small: a second thread costs more than it brings, and would compete with the
workers that cross-validate.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from threadpoolctl import ThreadpoolController


class _Shared:
    """A setting that holds while anybody is inside, in whichever thread; the last one to leave undoes it."""

    def __init__(self, make: Callable[[contextlib.ExitStack], None]):
        self._make, self._lock, self._users = make, threading.Lock(), 0
        self._undo = contextlib.ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._make(self._undo)

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._undo.close()


def _limit_torch(undo: contextlib.ExitStack) -> None:
    undo.callback(torch.set_num_threads, torch.get_num_threads())
    torch.set_num_threads(1)


torch_thread = _Shared(_limit_torch)
"""Run torch on one thread: ``with torch_thread:``. The caller's setting is given back."""


@lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    return ThreadpoolController()  # looks through the loaded libraries, so once is enough


def _limit_blas(undo: contextlib.ExitStack) -> None:
    undo.enter_context(_blas().limit(limits=1, user_api="blas"))


_blas_thread = _Shared(_limit_blas)


@contextlib.contextmanager
def single_thread() -> Iterator[None]:
    """Run torch, and the BLAS below numpy and scipy, on one thread.

    Where nothing but torch is at work `torch_thread` is enough: finding the BLAS takes a new process 20 ms.
    """
    with torch_thread, _blas_thread:
        yield


def tensor(array: Any) -> torch.Tensor:
    """A float64 tensor on the CPU, sharing memory with the array where it can."""
    return torch.from_numpy(np.asarray(array, dtype=np.float64, order="C"))
