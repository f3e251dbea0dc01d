"""How numpy and torch work while a model does: on one thread, and with numpy's own settings for errors.

While matrices are small a second thread brings nothing, and where all cores are at work each product of
matrices waits for it. And where torch has once had a second thread, a process that is forked later waits for
it for ever.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np
from threadpoolctl import ThreadpoolController


class Shared:
    """Settings that hold while anybody is inside, in whichever thread; the last one to leave undoes them."""

    def __init__(self, make: Callable[[contextlib.ExitStack], None]):
        self._makers, self._lock, self._users = [make], threading.Lock(), 0
        self._undo = contextlib.ExitStack()

    def add(self, make: Callable[[contextlib.ExitStack], None]) -> None:
        """A further setting from now on, also for those who are inside already."""
        with self._lock:
            self._makers.append(make)
            if self._users:
                make(self._undo)

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                with contextlib.ExitStack() as made:  # what could not be made as a whole holds for nobody
                    for make in self._makers:
                        make(made)
                    self._undo = made.pop_all()
            self._users += 1

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


one_thread = Shared(_limit_blas)
"""Run numpy, scipy and torch, once it is imported, on one thread: ``with one_thread:``. What the caller had
set is given back."""


@contextlib.contextmanager
def model_at_work() -> Iterator[None]:
    """`one_thread`, and numpy's own settings: what the user wants raised is not meant for the model."""
    with one_thread, np.errstate(divide="warn", over="warn", invalid="warn", under="ignore"):
        yield
