"""Search spaces: parsed from what scikit-learn's searches accept, encoded in [0, 1]."""

from sktransfer.space._space import Space

__all__ = ["Space"]
