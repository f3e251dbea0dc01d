"""When two beliefs count as the same.

Sums are rounded by where arrays happen to lie in memory, and the search for hyperparameters magnifies the
last bit to some 1e-5; a state that came back incomplete, or a belief that remembers, is off by far more.
"""

import numpy as np


def assert_same_prediction(ours, theirs):
    """Predictions (mean, std), or similarities, are alike but for rounding."""
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)


def assert_same_state(ours, theirs):
    """What was learned is the same to the last bit."""
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)
