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

Maker = Callable[[contextlib.ExitStack], None]
"""Makes a setting, and puts what undoes it on the stack."""


class ThreadLimit:
    """Settings that hold while anybody is inside.

    One is that of the process, which the last one to leave undoes, in whichever thread. Others are of each
    thread, as torch's is, and undone when it leaves.
    """

    def __init__(self, of_process: Maker):
        self._of_process, self._of_threads = of_process, list[Maker]()
        self._lock, self._users, self._undo = threading.Lock(), 0, contextlib.ExitStack()
        self._own = _Own()

    def add(self, of_thread: Maker) -> None:
        """A further setting of each thread, from its next entry on."""
        self._of_threads.append(of_thread)

    def __enter__(self) -> None:
        # A thread's own come first and are undone last: a BLAS may change them in the thread that sets it.
        own = self._own
        while own.made < len(self._of_threads):  # also what was added since it came in
            own.made += 1
            self._of_threads[own.made - 1](own.undo)
        own.depth += 1
        try:
            with self._lock:
                if self._users == 0:
                    self._of_process(self._undo)
                self._users += 1
        except BaseException:
            own.leave()
            raise

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._undo.close()
        self._own.leave()


class _Own(threading.local):
    """How deep a thread is inside, how many settings it has made, and what undoes them."""

    def __init__(self) -> None:
        self.depth, self.made, self.undo = 0, 0, contextlib.ExitStack()

    def leave(self) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.made = 0
            self.undo.close()


@lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    return ThreadpoolController()  # looks through the loaded libraries, so once is enough


def _limit_blas(undo: contextlib.ExitStack) -> None:
    undo.enter_context(_blas().limit(limits=1, user_api="blas"))


single_threaded = ThreadLimit(_limit_blas)
"""Run numpy, scipy and torch, once it is imported, on one thread: ``with single_threaded:``. What the caller
had set is given back."""


@contextlib.contextmanager
def numeric_context() -> Iterator[None]:
    """`single_threaded`, and numpy's own settings: what the user wants raised is not meant for the model."""
    with single_threaded, np.errstate(divide="warn", over="warn", invalid="warn", under="ignore"):
        yield
