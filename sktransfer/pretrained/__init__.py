"""The shipped encoder and heads, trained on thousands of data sets, and how they are read.

`classification.npz` and `regression.npz` hold plain arrays. `benchmarks/pretraining/train.py` made
them, and ``python -m sktransfer train`` continues their training with an archive.
"""

from sktransfer.pretrained._configurations import ConfigurationEncoder, Units, scale_of
from sktransfer.pretrained._model import PretrainedModel, load_model, model_digest

__all__ = [
    "ConfigurationEncoder",
    "PretrainedModel",
    "Units",
    "load_model",
    "model_digest",
    "scale_of",
]
