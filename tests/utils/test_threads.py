"""`ThreadLimit`: limits of the process and of each thread, set on entry and restored on exit."""

import contextlib
import threading

import pytest

from sktransfer.utils._threads import ThreadLimit


class Setting:
    """A fake limit that counts how often it is active."""

    def __init__(self):
        self.n_active = 0

    @contextlib.contextmanager
    def limit(self):
        self.n_active += 1
        try:
            yield
        finally:
            self.n_active -= 1


def test_process_limit_is_set_once_until_the_last_exit():
    setting = Setting()
    limit = ThreadLimit(setting.limit)
    with limit:
        with limit:
            assert setting.n_active == 1
        assert setting.n_active == 1
    assert setting.n_active == 0


def test_thread_limit_added_inside_holds_from_the_next_entry():
    process, thread = Setting(), Setting()
    limit = ThreadLimit(process.limit)
    with limit:
        limit.add_thread_limit(thread.limit)
        assert thread.n_active == 0
        with limit:
            assert thread.n_active == 1
        assert (process.n_active, thread.n_active) == (1, 0)


def test_last_thread_to_exit_restores_the_process_limit():
    setting, entered, may_exit = Setting(), threading.Event(), threading.Event()
    limit = ThreadLimit(setting.limit)

    def stay():
        with limit:
            entered.set()
            may_exit.wait(10)

    other = threading.Thread(target=stay)
    with limit:
        other.start()
        entered.wait(10)
    assert setting.n_active == 1
    may_exit.set()
    other.join()
    assert setting.n_active == 0


def test_failing_entry_restores_the_limits_set_before():
    @contextlib.contextmanager
    def fail():
        raise RuntimeError
        yield

    thread, process = Setting(), Setting()
    limit = ThreadLimit(process.limit)
    limit.add_thread_limit(thread.limit)
    limit.add_thread_limit(fail)
    with pytest.raises(RuntimeError), limit:
        pass
    assert (process.n_active, thread.n_active) == (0, 0)
    broken = ThreadLimit(fail)
    broken.add_thread_limit(thread.limit)
    with pytest.raises(RuntimeError), broken:
        pass
    assert thread.n_active == 0
