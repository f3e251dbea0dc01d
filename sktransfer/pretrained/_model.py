"""`PretrainedModel`: what was learned from thousands of data sets, read from arrays.

Notation: psi (q,) the embedding of a data set, all members of the ensemble joined; K data sets; n
configurations with codes of k columns; M metrics. Means and standard deviations are those of
comparable scores: standardized over random configurations of the estimator's whole space.
"""

from __future__ import annotations

import json
import warnings
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sktransfer.dataset import DatasetProfile
from sktransfer.exceptions import TransferWarning
from sktransfer.pretrained._configurations import ConfigurationEncoder, Parameter
from sktransfer.pretrained._inputs import read_profile
from sktransfer.pretrained._networks import Layer, finish_layers, run_layers

FORMAT = 1
"""Raise it when the meaning of the arrays changes. Files of other formats are not read."""

FOLDER = Path(__file__).parent
KINDS = ("classification", "regression")
MIN_LOG_STD, MAX_LOG_STD = -3.0, 1.5
MAX_DEVIATION = 4.0  # of a number of a profile, in standard deviations
MAX_BEYOND = 0.5  # how far it may lie outside of the usual range, in widths of the range
MIN_KNOWN_SHARE = 0.5  # of the numbers, below which a data set cannot be embedded

Arrays = Mapping[str, np.ndarray]


class Residual(NamedTuple):
    """What a head misses: a process with a Matérn-5/2 kernel.

    Parameters
    ----------
    lengths : ndarray of shape (k - 1,)
        Lengthscales of the columns of a code, without the last one, whether X is scaled.
    variance : float
        In variances that the head predicts.
    noise : float
        Variance of the noise of comparable scores.
    """

    lengths: np.ndarray
    variance: float
    noise: float


class PretrainedModel:
    """An encoder of data sets, and heads that predict scores of configurations.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        "format", "about" (JSON: kind, metrics, names of the numbers, parameters of each head,
        provenance), "inputs" (low, high, mean and standard deviation of each number), "center" and
        "spread" of psi, and the layers.

    Attributes
    ----------
    kind : {"classification", "regression"}
    metrics : tuple of str
    owners : tuple of str
        Classes of the estimators that have a head.
    provenance : dict
        Where the arrays come from: command, commit, counts.
    """

    def __init__(self, arrays: Arrays):
        if int(arrays["format"]) != FORMAT:
            raise ValueError(f"format {int(arrays['format'])} is not {FORMAT}")
        self._arrays = arrays
        about = json.loads(str(arrays["about"]))
        self.kind: str = about["kind"]
        self.metrics = tuple(about["metrics"])
        self.provenance: dict[str, Any] = about["provenance"]
        self._names: list[str] = about["names"]
        self._encoders = {
            owner: ConfigurationEncoder(owner, [_read_parameter(each) for each in parameters])
            for owner, parameters in about["heads"].items()
        }
        self.owners = tuple(self._encoders)
        self._low, self._high, self._mean, self._std = np.asarray(arrays["inputs"], dtype=float)
        self._center, self._spread = (
            np.asarray(arrays[name], dtype=float) for name in ("center", "spread")
        )
        self._radius = float(arrays["radius"])
        self._layers: dict[str, list[Layer]] = {}

    def encoder_of(self, owner: str) -> ConfigurationEncoder:
        """What turns configurations of an estimator into codes."""
        return self._encoders[owner]

    def _read_layers(self, prefix: str) -> list[Layer]:
        if prefix not in self._layers:
            found: list[Layer] = []
            while f"{prefix}.{len(found)}.w" in self._arrays:
                names = (f"{prefix}.{len(found)}.{part}" for part in "wb")
                w, b = (np.asarray(self._arrays[name], dtype=np.float32) for name in names)
                found.append((w, b))
            self._layers[prefix] = found
        return self._layers[prefix]

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays by name."""
        return {name: np.asarray(self._arrays[name]) for name in self._arrays}

    def members(self) -> list[dict[str, np.ndarray]]:
        """The weights of each member of the ensemble by name."""
        weights = {n: a for n, a in self.arrays().items() if n.endswith((".w", ".b"))}
        n_members = len(next(iter(weights.values())))
        return [
            {name: array[i].astype(np.float32) for name, array in weights.items()}
            for i in range(n_members)
        ]

    # -- data sets -----------------------------------------------------------------------------

    def embed(self, profile: DatasetProfile | None) -> np.ndarray | None:
        """psi of a data set, (q,); None if its profile holds too little."""
        if profile is None or profile.kind != self.kind or not profile.response_curves:
            return None
        numbers = self.read_numbers(profile)[None]
        return self.embed_numbers(numbers)[0] if self.is_enough(numbers)[0] else None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the numbers of a profile that the encoder reads."""
        return tuple(self._names)

    def is_enough(self, numbers: np.ndarray) -> np.ndarray:
        """Whether enough numbers of each data set are known to embed it; (K, F) -> (K,)."""
        return np.isfinite(numbers).mean(axis=1) >= MIN_KNOWN_SHARE

    def read_numbers(self, profile: DatasetProfile) -> np.ndarray:
        """The numbers of a profile that the encoder reads, (F,); NaN where it has none."""
        return read_profile(profile, self._names)

    def embed_numbers(self, numbers: np.ndarray) -> np.ndarray:
        """psi of data sets, given the numbers of their profiles; (K, F) -> (K, q)."""
        x = self.standardize(numbers).astype(np.float32)
        members = run_layers(self._read_layers("encoder"), x)  # (E, K, q / E)
        return np.concatenate(list(members), axis=1).astype(float)

    def standardize(self, numbers: np.ndarray) -> np.ndarray:
        """Inputs of the encoder; missing numbers are average; (K, F) -> (K, F)."""
        reach = MAX_BEYOND * (self._high - self._low)
        clipped = np.clip(numbers, self._low - reach, self._high + reach)
        z = np.clip((clipped - self._mean) / self._std, -MAX_DEVIATION, MAX_DEVIATION)
        return np.nan_to_num(z)

    def strangeness(self, psi: np.ndarray) -> float:
        """Distance of a data set from those of the training; above 1 it is unlike all of them."""
        z = (psi - self._center) @ self._spread
        return float(np.sqrt(np.mean(z * z)) / self._radius)

    @property
    def usual_embedding(self) -> np.ndarray:
        """psi of average data of the training, (q,)."""
        return self._center

    # -- scores --------------------------------------------------------------------------------

    def predict(
        self, owner: str, codes: np.ndarray, psi: np.ndarray, metric: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of comparable scores; (K, n, k), (K, q) -> (K, n) twice."""
        layers = self._read_layers(f"head.{owner}")
        K, n, k = codes.shape
        w, b = layers[0]
        # The first layer is linear in the code and in psi: the part of psi is computed once.
        E = len(w)
        own = psi.reshape(K, E, -1).swapaxes(0, 1).astype(np.float32)  # (E, K, q / E)
        shared = own @ w[:, k:] + b[:, None]  # (E, K, h)
        first = codes.reshape(K * n, k).astype(np.float32) @ w[:, :k]  # (E, K n, h)
        h = w.shape[2]
        first = first.reshape(E, K, n, h) + shared[:, :, None]
        out = finish_layers(layers[1:], first.reshape(E, K * n, h)).astype(float)
        M = len(self.metrics)
        means = out[:, :, metric]
        stds = np.exp(np.clip(out[:, :, M + metric], MIN_LOG_STD, MAX_LOG_STD))
        variance = (stds * stds).mean(axis=0) + means.var(axis=0)
        return means.mean(axis=0).reshape(K, n), np.sqrt(variance).reshape(K, n)

    def residual_of(self, owner: str) -> Residual | None:
        """What the head of an estimator misses; None if that was not learned."""
        name = f"residual.{owner}"
        if f"{name}.lengths" not in self._arrays:
            return None
        lengths, variances = (
            np.asarray(self._arrays[f"{name}.{part}"], dtype=float)
            for part in ("lengths", "variances")
        )
        if lengths.shape != (self._encoders[owner].width,):
            raise ValueError(f"{owner} has {len(lengths)} lengthscales")
        return Residual(lengths, *map(float, variances))

    def shared(self, A: np.ndarray, B: np.ndarray) -> np.ndarray | None:
        """How what heads miss on data sets is correlated with that on others.

        a exp(-|psi - psi'|² / l²) + b, and b for a data set that is not known. None if a, l and b
        were not learned; (K, q), (L, q) -> (K, L)
        """
        if "residual.shared" not in self._arrays:
            return None
        near, length, far = np.asarray(self._arrays["residual.shared"], dtype=float)
        squares = ((A[:, None] - B) ** 2).sum(axis=2) / length**2
        return near * np.exp(-np.where(np.isfinite(squares), squares, np.inf)) + far

    def predict_level(
        self, owner: str, is_scaled: bool, psi: np.ndarray, metric: int
    ) -> tuple[float, float]:
        """Shift and log scale of the scores of an estimator on a data set; (q,)."""
        layers = self._read_layers(f"level.{owner}")
        E = len(layers[0][0])
        own = psi.reshape(E, 1, -1).astype(np.float32)
        flag = np.full((E, 1, 1), float(is_scaled), dtype=np.float32)
        out = run_layers(layers, np.concatenate([flag, own], axis=2)).mean(axis=0)[0]
        M = len(self.metrics)
        return float(out[metric]), float(out[M + metric])


def describe_parameters(encoder: ConfigurationEncoder) -> list[dict[str, Any]]:
    """The parameters of a head as plain data."""
    return [asdict(parameter) for parameter in encoder.parameters]


def _read_parameter(data: Mapping[str, Any]) -> Parameter:
    values = tuple(tuple(v) if isinstance(v, list) else v for v in data["values"])
    default = data["default"]
    default = tuple(default) if isinstance(default, list) else default
    return Parameter(**{**data, "values": values, "default": default})


# -- files -----------------------------------------------------------------------------------------


def write_model(path: Path, arrays: Arrays) -> None:
    """Write the arrays of a model; weights have 16 bits."""
    half: dict[str, Any] = {
        name: array.astype(np.float16) if name.endswith((".w", ".b")) else array
        for name, array in arrays.items()
    }
    with path.open("wb") as file:
        np.savez_compressed(file, **half)


def read_model(path: Path) -> PretrainedModel:
    """Read a model. Arrays of heads are read when they are needed."""
    return PretrainedModel(np.load(path, allow_pickle=False))


def load_model(kind: str, folders: Sequence[Path] = ()) -> PretrainedModel | None:
    """The model for a kind of task: that of the first folder which has one, or the shipped one.

    None, with a warning, if the file is missing or damaged.
    """
    if kind not in KINDS:
        return None
    for folder in (*folders, FOLDER):
        path = folder / f"{kind}.npz"
        if path.exists() or folder is FOLDER:
            return _load(path, path.stat().st_mtime_ns if path.exists() else 0)
    return None


def model_digest(folders: Sequence[Path] = ()) -> str:
    """A text that changes with the files of the models. What was computed by them is then void."""
    found = []
    for kind in KINDS:
        paths = (folder / f"{kind}.npz" for folder in (*folders, FOLDER))
        path = next((each for each in paths if each.exists()), None)
        found.append("none" if path is None else f"{zlib.crc32(path.read_bytes()):08x}")
    return "-".join(found)


@lru_cache(maxsize=4)
def _load(path: Path, time: int) -> PretrainedModel | None:
    try:
        return read_model(path)
    except Exception as error:  # whatever is wrong with the file, the search can go on
        warnings.warn(
            f"The pretrained model {path.name} cannot be read ({type(error).__name__}: {error}). "
            "The search continues without it. Install sktransfer again to repair it.",
            TransferWarning,
            stacklevel=3,
        )
        return None
