"""From trained members to the arrays of a `PretrainedModel`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sktransfer.pretrained._configurations import ConfigurationEncoder
from sktransfer.pretrained._model import FORMAT, PretrainedModel, describe_parameters

USUAL_RANGE = (1, 99)  # percentiles
STRANGE_QUANTILE = 0.995  # of the distances in the training, beyond which a data set is unusual
STRANGE_FACTOR = 1.5


def measure_inputs(numbers: np.ndarray) -> np.ndarray:
    """Low, high, mean and standard deviation of each number of the profiles; (D, F) -> (4, F)."""
    if not numbers.shape[1]:  # an encoder that knows nothing of the data, for comparison
        return np.empty((4, 0))
    filled = np.where(np.isfinite(numbers).any(axis=0), numbers, 0.0)
    low, high = np.nanpercentile(filled, USUAL_RANGE, axis=0)
    clipped = np.clip(filled, low, high)
    std = np.nanstd(clipped, axis=0)
    return np.stack([low, high, np.nanmean(clipped, axis=0), np.where(std > 1e-6, std, 1.0)])


def begin_arrays(
    kind: str,
    metrics: Sequence[str],
    names: Sequence[str],
    inputs: np.ndarray,
    encoders: Mapping[str, ConfigurationEncoder],
    provenance: Mapping[str, Any],
) -> dict[str, np.ndarray]:
    """The arrays without weights, from which inputs of the encoder can be standardized."""
    q = 1  # psi is measured later
    about = {
        "kind": kind,
        "metrics": list(metrics),
        "names": list(names),
        "heads": {owner: describe_parameters(encoder) for owner, encoder in encoders.items()},
        "provenance": dict(provenance),
    }
    return {
        "format": np.array(FORMAT),
        "about": np.array(json.dumps(about)),
        "inputs": inputs,
        "center": np.zeros(q),
        "spread": np.eye(q),
        "radius": np.array(1.0),
    }


def finish_arrays(
    arrays: Mapping[str, np.ndarray],
    members: Sequence[Mapping[str, np.ndarray]],
    numbers: np.ndarray,
) -> dict[str, np.ndarray]:
    """Add the weights of all members, and where psi lies on the data sets of the training.

    Parameters
    ----------
    arrays : mapping
        Result of `begin_arrays`.
    members : sequence of mapping
        Weights by name, of each member.
    numbers : ndarray of shape (D, F)
        Numbers of the profiles of the training.
    """
    stacked = {name: np.stack([member[name] for member in members]) for name in members[0]}
    made = dict(arrays) | stacked
    psi = PretrainedModel(made).embed_numbers(numbers)
    center = psi.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov((psi - center).T) + 1e-6 * np.eye(len(center)))
    spread = vectors / np.sqrt(np.maximum(values, 1e-4 * values.max()))
    distances = np.sqrt((((psi - center) @ spread) ** 2).mean(axis=1))
    radius = STRANGE_FACTOR * np.quantile(distances, STRANGE_QUANTILE)
    return made | {"center": center, "spread": spread, "radius": np.array(radius)}


def extend_arrays(
    model: PretrainedModel,
    encoders: Mapping[str, ConfigurationEncoder],
    members: Sequence[Mapping[str, np.ndarray]],
    provenance: Mapping[str, Any],
) -> dict[str, np.ndarray]:
    """The arrays of a model with other weights, and with heads that are new or trained further.

    Weights of heads that `members` do not have stay as they are.
    """
    arrays = model.arrays()
    about = json.loads(str(arrays["about"]))
    about["heads"] |= {owner: describe_parameters(each) for owner, each in encoders.items()}
    about["provenance"] |= dict(provenance)
    stacked = {name: np.stack([member[name] for member in members]) for name in members[0]}
    return arrays | stacked | {"about": np.array(json.dumps(about))}
