"""What the store keeps of each data set: sizes, scales, meta-features, sketch, response curves."""

from __future__ import annotations

import numpy as np

from benchmarks.pretraining.generator import DataSet
from benchmarks.pretraining.store import Record


def make_profile_record(data: DataSet) -> Record:
    raise NotImplementedError
