"""When two predictions or two states count as the same.

Rounding of sums depends on how arrays are aligned in memory, and the optimization of
hyperparameters magnifies the last bit to some 1e-5. An incomplete state, or a posterior that
depends on earlier calls, is off by far more.
"""

import numpy as np


def assert_same_prediction(ours, theirs):
    """Predictions (mean, std), or similarities, are equal up to rounding."""
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)


def assert_same_state(ours, theirs):
    """Two states are the same to the last bit."""
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)
