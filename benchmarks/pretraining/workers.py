"""Run a function in worker processes that are ended when they take too long.

The limit is on processor time, and the kernel enforces it (``RLIMIT_CPU``). So it also ends loops
in compiled code, and neither a busy machine nor a pause of the process counts.
"""

from __future__ import annotations

import math
import multiprocessing
import resource
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any


class Worker:
    """A process that calls one function again and again.

    Parameters
    ----------
    function : callable
    max_seconds : float
        Processor time of one call.
    """

    def __init__(self, function: Callable[..., Any], max_seconds: float):
        self._function, self._max_seconds = function, max_seconds
        self.arguments: tuple[Any, ...] | None = None
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("fork")
        self.connection, theirs = context.Pipe()
        arguments = (self._function, self._max_seconds, theirs, self.connection)
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        theirs.close()

    def send(self, arguments: tuple[Any, ...]) -> None:
        """Begin a call."""
        self.arguments = arguments
        self.connection.send(arguments)

    def receive(self) -> Any:
        """Return the result of the call, or None if it failed or its process was ended."""
        self.arguments = None
        try:
            return self.connection.recv()
        except (EOFError, ConnectionResetError):
            self.stop()
            self._start()
            return None

    def stop(self) -> None:
        self._process.kill()
        self._process.join()
        self.connection.close()


def _serve(
    function: Callable[..., Any], max_seconds: float, connection: Connection, parents: Connection
) -> None:
    parents.close()  # else the end of the parent would go unnoticed
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while True:
        try:
            arguments = connection.recv()
        except EOFError:
            return
        _limit_processor_time(max_seconds)
        try:
            connection.send(function(*arguments))
        except Exception:  # one bad data set must not end the run
            print(f"{arguments[:2]}: {traceback.format_exc()}", flush=True)
            connection.send(None)


def _limit_processor_time(seconds: float) -> None:
    """Let the kernel end this process after some more seconds of processor time."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = math.ceil(used.ru_utime + used.ru_stime + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def run_in_workers(
    function: Callable[..., Any],
    calls: Sequence[tuple[Any, ...]],
    n_jobs: int,
    max_seconds: float,
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield (arguments, result) as calls finish; the result is None if a call fails.

    Parameters
    ----------
    function : callable
    calls : sequence of tuple
        Arguments of each call.
    n_jobs : int
    max_seconds : float
        A call that takes more processor time is ended with its process.
    """
    workers = [Worker(function, max_seconds) for _ in range(min(n_jobs, len(calls)))]
    waiting = list(reversed(calls))
    try:
        while waiting or any(worker.arguments for worker in workers):
            for worker in workers:
                if worker.arguments is None and waiting:
                    worker.send(waiting.pop())
            busy = [worker for worker in workers if worker.arguments]
            ready = wait([worker.connection for worker in busy])
            for worker in busy:
                if worker.connection in ready:
                    arguments = worker.arguments
                    yield arguments, worker.receive()
    finally:
        for worker in workers:
            worker.stop()
