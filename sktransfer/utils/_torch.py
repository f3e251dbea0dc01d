"""How this package uses torch: float64 on the CPU, on one thread, without changing global state.

The matrices here are small. A second thread costs more than it gains, and it would compete with the
workers that cross-validate.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import torch

from sktransfer.utils._threads import single_threaded


@contextlib.contextmanager
def _limit_torch() -> Iterator[None]:
    previous = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(previous)


single_threaded.add_thread_limit(_limit_torch)


@contextlib.contextmanager
def torch_context() -> Iterator[None]:
    """Enter `single_threaded`, and create the tensors of torch's optimizers on the CPU."""
    is_elsewhere = torch.get_default_device().type != "cpu"
    with single_threaded, torch.device("cpu") if is_elsewhere else contextlib.nullcontext():
        yield


def eye(n: int) -> torch.Tensor:
    """Make a float64 identity matrix on the CPU, whatever the user's default device is."""
    return torch.eye(n, dtype=torch.float64, device="cpu")


def tensor(array: object) -> torch.Tensor:
    """Make a float64 tensor on the CPU that shares memory with the array where possible."""
    return torch.from_numpy(np.asarray(array, dtype=np.float64, order="C"))
