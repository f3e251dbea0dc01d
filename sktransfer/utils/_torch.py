"""The one door to torch: imported on first use, float64 on the CPU, one thread, no global state kept.

The matrices here are small: a second thread costs more than it brings, and would compete with the
workers that cross-validate.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from sktransfer.utils._threads import single_threaded


def _limit_torch(undo: contextlib.ExitStack) -> None:
    undo.callback(torch.set_num_threads, torch.get_num_threads())
    torch.set_num_threads(1)


single_threaded.add(_limit_torch)


@contextlib.contextmanager
def torch_context() -> Iterator[None]:
    """`single_threaded`, and torch's optimizers on the CPU."""
    elsewhere = torch.get_default_device().type != "cpu"
    with single_threaded, torch.device("cpu") if elsewhere else contextlib.nullcontext():
        yield


def eye(n: int) -> torch.Tensor:
    """The unit matrix, wherever the user's own tensors go."""
    return torch.eye(n, dtype=torch.float64, device="cpu")


def tensor(array: Any) -> torch.Tensor:
    """A float64 tensor on the CPU, sharing memory with the array where it can."""
    return torch.from_numpy(np.asarray(array, dtype=np.float64, order="C"))
