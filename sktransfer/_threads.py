"""How numpy works while a model does: on one thread, and with its own settings for errors.

While matrices are small a second thread of the BLAS below numpy and scipy brings nothing, and where all cores
are at work each product of matrices waits for it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
from threadpoolctl import ThreadpoolController


class Shared:
    """A setting that holds while anybody is inside, in whichever thread; the last one to leave undoes it."""

    def __init__(self, make: Callable[[contextlib.ExitStack], None]):
        self._make, self._lock, self._users = make, threading.Lock(), 0
        self._undo = contextlib.ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._make(self._undo)
            self._users += 1  # after it: a setting that could not be made holds for nobody

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._undo.close()


@lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    return ThreadpoolController()  # looks through the loaded libraries, so once is enough


def _limit_blas(undo: contextlib.ExitStack) -> None:
    undo.enter_context(_blas().limit(limits=1, user_api="blas"))


blas_thread = Shared(_limit_blas)
"""Run numpy and scipy on one thread: ``with blas_thread:``. The caller's setting is given back."""


@contextlib.contextmanager
def model_at_work() -> Iterator[None]:
    """`blas_thread`, and numpy's own settings: what the user wants raised is not meant for the model."""
    with blas_thread, np.errstate(divide="warn", over="warn", invalid="warn", under="ignore"):
        yield
