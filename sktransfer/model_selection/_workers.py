"""`Workers`: fits on the workers of a joblib backend, whose results are handed back as they come.

scikit-learn's `Parallel` returns when the last fit of a call is done, and raises an error when a
worker dies. Here each fit is submitted to the same backend (threads, processes, dask, ray), so that
further fits can be submitted when the first results are there. When a worker dies, its fits are
tried again once, one after the other, so that the one to blame is known. If it dies again, that fit
counts as failed.
"""

from __future__ import annotations

import math
import queue
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from joblib import Parallel, register_parallel_backend
from joblib.parallel import BACKENDS, BatchedCalls

from sktransfer.exceptions import WorkersLostError
from sktransfer.model_selection._folds import CandidateFolds
from sktransfer.model_selection._pickling import check_picklable, explain_unpicklable
from sktransfer.model_selection._sklearn_compat import Fit, attach_configuration, make_failed_row

Key = Any
MAX_SECONDS_WITHOUT_WORKERS = 60.0
MIN_TASK_SECONDS = 0.05  # below which the folds of a candidate are one task
SCATTER_TRIES = 5
TASKS_PER_WORKER = 3  # that are submitted at most, so that none waits for the next
POLL_SECONDS = 1.0  # how often a cluster without news is asked whether it is still there

DEATHS = frozenset(
    {
        "TerminatedWorkerError",  # loky
        "BrokenProcessPool",
        "KilledWorker",  # dask
        "FutureCancelledError",
        "CancelledError",
        "RayActorError",  # ray
        "ActorDiedError",
        "WorkerCrashedError",
    }
)
"""Names of the errors by which backends say that a worker died, or that its data are gone."""


class Workers:
    """Runs fits on the workers of a backend.

    Parameters
    ----------
    parallel : joblib.Parallel
        Inside its context, so that it has a backend.
    data : sequence
        Arguments that all fits share, which are sent to a cluster only once.
    """

    def __init__(self, parallel: Parallel, data: Sequence[Any] = ()):
        self._parallel = parallel
        self._data = [each for each in data if each is not None]
        self._outcomes: queue.SimpleQueue = queue.SimpleQueue()
        self._running: dict[int, tuple[Key, list[Fit], int]] = {}
        self._suspects: deque[tuple[Key, list[Fit]]] = deque()
        self._n_submitted = 0

    @staticmethod
    def can_use(parallel: object) -> bool:
        """Whether the backend of a `Parallel` hands back results as they come."""
        backend = getattr(parallel, "_backend", None)
        return bool(getattr(backend, "supports_retrieve_callback", False)) and hasattr(
            backend, "submit"
        )

    @property
    def _backend(self) -> Any:
        return self._parallel._backend

    @property
    def uses_threads(self) -> bool:
        return bool(getattr(self._backend, "uses_threads", False))

    @property
    def n_running(self) -> int:
        """Number of tasks that were submitted and not handed back yet."""
        return len(self._running) + len(self._suspects)

    @contextmanager
    def open(self) -> Iterator[Workers]:
        """Prepare the backend for tasks. They are aborted if an error ends the block."""
        backend = self._backend
        backend.start_call()
        self._scatter()
        try:
            yield self
        except BaseException:
            self._running.clear()
            with suppress(Exception):
                backend.abort_everything(ensure_ready=True)
            raise
        finally:
            self._forget_scattered()
            with suppress(Exception):  # of a cluster that is gone
                backend.stop_call()

    def _scatter(self) -> None:
        """Send shared data to all workers of a dask cluster, once for the whole search."""
        known = getattr(self._backend, "data_futures", None)
        new = [each for each in self._data if known is not None and id(each) not in known]
        if known is None or not new:
            return
        for n_left in reversed(range(SCATTER_TRIES)):
            try:
                self._backend.client.wait_for_workers(1, timeout=MAX_SECONDS_WITHOUT_WORKERS)
                futures = self._backend.client.scatter(new, broadcast=True, hash=False)
                known.update((id(each), got) for each, got in zip(new, futures, strict=True))
                return
            except (OSError, TimeoutError, CancelledError) as error:
                self._check_cluster()
                if not n_left:
                    raise WorkersLostError(f"The workers cannot be reached ({error}).") from error
                time.sleep(POLL_SECONDS)  # a worker may have died meanwhile

    def _forget_scattered(self) -> None:
        """Other data may have the same identity later."""
        for each in self._data:
            getattr(self._backend, "data_futures", {}).pop(id(each), None)

    def run(self, fits: Sequence[Fit]) -> list[dict[str, Any]]:
        """Have some fits done; returns their rows in the same order."""
        for number, fit in enumerate(fits):
            self.submit(number, [fit])
        found = dict(self.next_result() for _ in fits)
        return [found[number][0] for number in range(len(fits))]

    def submit(self, key: Key, fits: list[Fit]) -> None:
        """Have some fits done by one worker, one after the other."""
        self._submit(key, fits, n_tries=1)

    def _submit(self, key: Key, fits: list[Fit], n_tries: int) -> None:
        number = self._n_submitted
        self._n_submitted += 1
        self._running[number] = key, fits, n_tries
        self._scatter()
        parallel, backend = self._parallel, self._backend

        def set_folder() -> None:  # for the memory maps of joblib's processes
            backend._workers._temp_folder_manager.set_current_context(parallel._id)

        tasks = [attach_configuration(fit) for fit in fits]
        on_pickling = set_folder if hasattr(backend, "_workers") else None
        call = BatchedCalls(tasks, backend.get_nested_backend(), on_pickling, {})
        try:
            job = backend.submit(call, callback=lambda out: self._outcomes.put((number, out)))
        except RuntimeError as error:  # the pool broke since the last result
            self._outcomes.put((number, error))
            return
        if hasattr(job, "add_done_callback") and hasattr(backend, "client"):
            # dask's backend calls back for successes only.
            job.add_done_callback(lambda done: self._put_error(number, done))

    def _put_error(self, number: int, job: Future) -> None:
        error = CancelledError() if job.cancelled() else job.exception()
        if error is not None:
            self._outcomes.put((number, error))

    def next_result(self) -> tuple[Key, list[dict[str, Any]]]:
        """Wait for a task; returns its key and its rows."""
        while True:
            if not self._running and self._suspects:
                key, fits = self._suspects.popleft()
                self._submit(key, fits, n_tries=2)
            number, outcome = self._wait()
            if number not in self._running:  # of tasks that were aborted
                continue
            key, fits, n_tries = self._running.pop(number)
            try:
                return key, self._retrieve(outcome)
            except Exception as error:
                if not _is_death(error):
                    explain_unpicklable(error, fits[0])
                    raise
                self._check_cluster()
                if n_tries == 2:
                    self._revive()
                    return key, [make_failed_row(fit, error) for fit in fits]
                self._suspects.append((key, fits))
                self._suspect_all()

    def _retrieve(self, outcome: Any) -> Any:
        if isinstance(outcome, BaseException):
            raise outcome
        return self._backend.retrieve_result_callback(outcome)

    def _suspect_all(self) -> None:
        """Where one dead worker breaks the whole pool, have all running tasks tried again."""
        if not hasattr(self._backend, "client"):
            self._suspects.extend((key, fits) for key, fits, _ in self._running.values())
        self._revive()

    def _revive(self) -> None:
        """Make the workers fit for use again after one died."""
        if hasattr(self._backend, "client"):
            # A dask cluster goes on with its other workers, but the data may be gone. They are sent
            # again with the next task, when all tasks that failed for this reason are known.
            self._forget_scattered()
            return
        self._running.clear()
        self._backend.abort_everything(ensure_ready=True)

    def _wait(self) -> tuple[int, Any]:
        since = time.monotonic()
        while True:
            try:
                return self._outcomes.get(timeout=POLL_SECONDS)
            except queue.Empty:
                self._check_cluster(since)

    def _check_cluster(self, waiting_since: float | None = None) -> None:
        """Raise an error if a dask cluster is gone, or has had no worker for long."""
        client = getattr(self._backend, "client", None)
        if client is None:
            return
        while client.status == "connecting":  # it gives up after a while
            time.sleep(POLL_SECONDS)
        if client.status != "running":
            raise WorkersLostError("The dask cluster is gone.")
        seconds = 0.0 if waiting_since is None else time.monotonic() - waiting_since
        if seconds > MAX_SECONDS_WITHOUT_WORKERS and not client.ncores():
            raise WorkersLostError("The dask cluster has no workers any more.")


@dataclass(frozen=True, eq=False)
class Started:
    """A candidate whose folds are being evaluated.

    Parameters
    ----------
    params : dict
    fits : list of Fit
        One for each fold.
    folds : CandidateFolds
    """

    params: dict[str, Any]
    fits: list[Fit]
    folds: CandidateFolds


class FoldRunner:
    """Evaluates the folds of several candidates on workers, each candidate at its own pace.

    Parameters
    ----------
    workers : Workers
    n_workers : int
    """

    def __init__(self, workers: Workers, n_workers: int):
        self._workers, self._n_workers = workers, n_workers
        self._n_waiting: dict[Started, int] = {}  # tasks of each candidate
        self._fit_seconds = math.inf  # of one fit, lately

    @property
    def n_running(self) -> int:
        """Number of candidates that are not done."""
        return len(self._n_waiting)

    @property
    def is_full(self) -> bool:
        """Whether all workers are busy, and further tasks are waiting for them."""
        return self._workers.n_running >= TASKS_PER_WORKER * self._n_workers

    @property
    def is_busy(self) -> bool:
        """Whether no worker is free."""
        return self._workers.n_running >= self._n_workers

    def is_running(self, candidate: Started) -> bool:
        return candidate in self._n_waiting

    def start(self, candidate: Started) -> None:
        """Submit the next folds of a candidate, if there are any."""
        chosen = candidate.folds.next_folds()
        if not chosen:
            self._n_waiting.pop(candidate, None)
            return
        if not self._n_waiting and not self._workers.uses_threads:
            check_picklable(candidate.fits[0])
        # Sending a task costs about a millisecond.
        is_fast = self._fit_seconds < MIN_TASK_SECONDS
        tasks = [chosen] if is_fast else [[fold] for fold in chosen]
        self._n_waiting[candidate] = len(tasks)
        for folds in tasks:
            self._workers.submit((candidate, folds), [candidate.fits[fold] for fold in folds])

    def run_one(self) -> Started | None:
        """Wait for a task, and start what comes next; returns its candidate if that is done."""
        (candidate, folds), rows = self._workers.next_result()
        candidate.folds.rows.update(zip(folds, rows, strict=True))
        self._fit_seconds = sum(row["fit_time"] + row["score_time"] for row in rows) / len(rows)
        self._n_waiting[candidate] -= 1
        if not self._n_waiting[candidate]:
            self.start(candidate)
        return None if candidate in self._n_waiting else candidate


def _is_death(error: BaseException) -> bool:
    return any(each.__name__ in DEATHS for each in type(error).__mro__)


def _make_ray_backend(**params: Any) -> Any:
    try:
        from ray.util.joblib.ray_backend import RayBackend
    except ImportError:
        raise ImportError(
            "joblib's backend 'ray' needs ray, which is not installed: pip install ray"
        ) from None
    return RayBackend(**params)


if "ray" not in BACKENDS:  # so that joblib.parallel_config(backend="ray") needs no registration
    register_parallel_backend("ray", _make_ray_backend)
