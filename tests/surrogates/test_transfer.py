"""Every transfer surrogate uses helpful past tasks and overcomes misleading ones."""

import pytest

from sktransfer.surrogates import make_surrogate
from sktransfer.testing import TRANSFER_CHECKS

# dist-gp and dist-blr, which need data to compare, are in test_joint.
NAMES = [
    "ablr",
    "box",
    "common-surface",
    "copula-gp",
    "copula-ts",
    "dklm",
    "fsbo",
    "rgpe",
    "scot",
    "task-prior",
    "tst",
]
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("check", TRANSFER_CHECKS, ids=lambda check: check.__name__)
def test_own_surrogate_passes_transfer_check(name, check):
    check(make_surrogate(name))
