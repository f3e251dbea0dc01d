"""`PretrainedEncoder`: the shipped embedding, learned from score surfaces of many data sets.

It reads what a profile holds without any row: sizes, units, meta-features and response curves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sktransfer.dataset import DatasetProfile
from sktransfer.encoders._base import NO_PROFILE, Encoder
from sktransfer.pretrained import PretrainedModel, load_model

if TYPE_CHECKING:
    import torch


class PretrainedEncoder(Encoder):
    """The shipped embedding of data sets. It runs in numpy and is not trained further.

    Classification and regression have an encoder each. `fit` chooses the one that fits most of the
    profiles. The others cannot be read.

    Examples
    --------
    >>> from sklearn.datasets import load_iris, load_wine
    >>> from sktransfer import profile
    >>> data = [profile(*load(return_X_y=True)) for load in (load_iris, load_wine)]
    >>> psi = PretrainedEncoder().fit(data).transform(data)
    >>> len(psi), bool(np.isfinite(psi).all())
    (2, True)
    """

    def fit(self, profiles: Sequence[DatasetProfile | None]) -> Self:
        """Choose the encoder of the kind that most profiles have."""
        kinds = Counter(profile.kind for profile in profiles if profile is not None)
        self.restore({"kind": np.array(max(kinds, key=kinds.__getitem__, default=""))})
        return self

    def constants(self) -> dict[str, np.ndarray]:
        return {"kind": np.array(self.kind_)}

    def restore(self, constants: dict[str, np.ndarray]) -> None:
        self.kind_ = str(constants["kind"])

    @property
    def _model(self) -> PretrainedModel | None:
        return load_model(self.kind_)

    def read(self, profile: DatasetProfile | None) -> np.ndarray | None:
        """psi, (q,); None if the profile holds too little."""
        return None if self._model is None else self._model.embed(profile)

    def transform(self, profiles: Sequence[DatasetProfile | None]) -> np.ndarray:
        """psi of all data sets, (m, q). Rows of data sets that cannot be encoded are NaN."""
        found = [self.read(profile) for profile in profiles]
        q = next((len(psi) for psi in found if psi is not None), 0)
        rows = [np.full(q, np.nan) if psi is None else psi for psi in found]
        return np.array(rows, dtype=float).reshape(len(rows), q)

    def embed(self, inputs: Sequence[Any], rng: np.random.Generator | None = None) -> torch.Tensor:
        from sktransfer.utils._torch import tensor

        return tensor(np.array(inputs, dtype=float))

    def basis(self, profile: DatasetProfile | None) -> str:
        if profile is None:
            return NO_PROFILE
        if self.read(profile) is None:
            return "nothing: its profile has no response curves"
        return "the pretrained embedding"
