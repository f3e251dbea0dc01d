"""Numbers that several surrogates share."""

from __future__ import annotations

WARM_SHARE = 0.25
"""Share of the training steps when training continues from the weights of an earlier model."""

GP_JITTER = 1e-9
"""Added to the noise of a process on the trials of one task, whose scores have unit variance."""

JOINT_JITTER = 1e-6
"""The same for processes on many tasks or on learned features, whose rows may be nearly equal."""

PRIOR_JITTER = 1e-8
"""The same for priors that are computed from past tasks."""
