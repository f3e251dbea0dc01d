"""Run a function in worker processes that are killed when they take too long."""

from __future__ import annotations

import multiprocessing
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any


class Worker:
    """A process that calls one function again and again."""

    def __init__(self, function: Callable[..., Any]):
        self._function = function
        self.arguments: tuple[Any, ...] | None = None
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("fork")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(self._function, theirs, self.connection), daemon=True
        )
        self._process.start()
        theirs.close()

    def send(self, arguments: tuple[Any, ...], deadline: float) -> None:
        """Begin a call."""
        self.arguments, self.deadline = arguments, deadline
        self.connection.send(arguments)

    def receive(self) -> Any:
        """Return the result of the call, or None if it failed or took too long."""
        self.arguments = None
        if self.connection.poll():
            try:
                return self.connection.recv()
            except EOFError:
                pass  # the process died
        self.stop()
        self._start()
        return None

    def stop(self) -> None:
        self._process.kill()
        self._process.join()
        self.connection.close()


def _serve(function: Callable[..., Any], connection: Connection, parents: Connection) -> None:
    parents.close()  # else the end of the parent would go unnoticed
    while True:
        try:
            arguments = connection.recv()
        except EOFError:
            return
        try:
            connection.send(function(*arguments))
        except Exception:  # one bad data set must not end the run
            print(f"{arguments[:2]}: {traceback.format_exc()}", flush=True)
            connection.send(None)


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
        A call that takes longer is ended with its process.
    """
    workers = [Worker(function) for _ in range(min(n_jobs, len(calls)))]
    waiting = list(reversed(calls))
    try:
        while waiting or any(worker.arguments for worker in workers):
            for worker in workers:
                if worker.arguments is None and waiting:
                    worker.send(waiting.pop(), time.monotonic() + max_seconds)
            busy = [worker for worker in workers if worker.arguments]
            first = min(worker.deadline for worker in busy)
            ready = wait([w.connection for w in busy], max(0.0, first - time.monotonic()) + 0.01)
            for worker in busy:
                if worker.connection in ready or time.monotonic() > worker.deadline:
                    arguments = worker.arguments
                    yield arguments, worker.receive()
    finally:
        for worker in workers:
            worker.stop()
