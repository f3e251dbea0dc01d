"""Limit BLAS and torch to one thread while a model is fitted or evaluated.

The matrices of this package are small, so a second thread does not speed up their products. It
slows them down where all cores are busy, because each product waits for it. Moreover, once torch
has started a second thread, a process that is forked later waits for that thread forever.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import lru_cache

import numpy as np
from threadpoolctl import ThreadpoolController

Limit = Callable[[], AbstractContextManager[object]]
"""Makes a context manager that sets a limit on entry and restores the previous one on exit."""


class ThreadLimit:
    """A reusable and nestable context manager that holds one limit per process and some per thread.

    The limit of the process is set by the first thread that enters and restored by the last one
    that exits. The limits of a thread, such as torch's, are set and restored by each thread for
    itself.
    """

    def __init__(self, process_limit: Limit):
        self._process_limit = process_limit
        self._thread_limits: list[Limit] = []
        self._lock, self._n_entered, self._restore_process = threading.Lock(), 0, ExitStack()
        self._local = _Entered()

    def add_thread_limit(self, limit: Limit) -> None:
        """Set a further limit in each thread, from its next entry on."""
        self._thread_limits.append(limit)

    def __enter__(self) -> None:
        with ExitStack() as restore:
            # The limits of the thread are set first and restored last, because setting the limit
            # of a BLAS that uses OpenMP can change them.
            for limit in self._thread_limits:
                restore.enter_context(limit())
            self._enter_process()
            restore.callback(self._exit_process)
            self._local.restore.append(restore.pop_all())

    def __exit__(self, *error: object) -> None:
        self._local.restore.pop().close()

    def _enter_process(self) -> None:
        with self._lock:
            if self._n_entered == 0:
                self._restore_process.enter_context(self._process_limit())
            self._n_entered += 1

    def _exit_process(self) -> None:
        with self._lock:
            self._n_entered -= 1
            if self._n_entered == 0:
                self._restore_process.close()


class _Entered(threading.local):
    """One stack of things to restore for each time that a thread has entered."""

    def __init__(self) -> None:
        self.restore: list[ExitStack] = []


@lru_cache(maxsize=1)
def _find_blas() -> ThreadpoolController:
    return ThreadpoolController()  # looks through the loaded libraries, so once is enough


def _limit_blas() -> AbstractContextManager[object]:
    return _find_blas().limit(limits=1, user_api="blas")


single_threaded = ThreadLimit(_limit_blas)
"""Run numpy, scipy and, once it is imported, torch on one thread: ``with single_threaded:``.

The caller's settings are restored on exit."""


@contextlib.contextmanager
def numeric_context() -> Iterator[None]:
    """Enter `single_threaded` and numpy's default error settings.

    A user who makes numpy raise errors does not mean the models of this package.
    """
    defaults = np.errstate(divide="warn", over="warn", invalid="warn", under="ignore")
    with single_threaded, defaults:
        yield
