"""`check_params`: invalid parameters are found without fitting anything."""

import pytest

from sktransfer import surrogates
from sktransfer.surrogates import REGISTRY, make_surrogate

INVALID = {
    "ABLR": [
        {"context": "given"},
        {"head": "none"},
        {"layers": ()},
        {"steps": 0},
        {"encoder": "manual"},
    ],
    "Bohamiann": [{"layers": (0,)}, {"n_chains": 0}, {"step_size": 1.0}],
    "Box": [{"n_inside": -1}, {"min_width": 0.0}, {"kernel": "rbf"}],
    "CommonSurface": [{"kernel": "rbf"}, {"scale": "none"}, {"weights": (0, 0)}, {"redraw": 2.0}],
    "ContextBohamiann": [{"layers": (0,)}, {"max_trials": 0}],
    "CopulaGP": [{"transform": "none"}, {"dropout": 1.0}, {"objective": ""}],
    "DKLM": [{"scores": "none"}, {"n_trials": 1}, {"layers": ()}, {"adapt_steps": -1}],
    "DNGO": [{"layers": ()}, {"steps": -1}],
    "DistBLR": [{"scores": "none"}, {"encoder": "manual"}],
    "DistGP": [{"scores": "none"}, {"encoder": "manual"}, {"kernel": "rbf"}, {"max_trials": 0}],
    "GP": [{"kernel": "rbf"}],
    "NearestTaskGP": [{"n_trials": 0}, {"metric": "cosine"}],
    "RGPE": [{"kernel": "rbf"}, {"max_tasks": 0}, {"max_trials": 0}, {"n_samples": 0}],
    "SCoT": [{"kernel": "rbf"}, {"C": 0.0}, {"n_features": 0}],
    "TST": [{"kernel": "rbf"}, {"max_tasks": 0}, {"bandwidth": 0.0}],
    "TargetBLR": [{"layers": ()}, {"steps": -1}],
    "TaskPrior": [{"kernel": "rbf"}, {"max_tasks": 0}, {"max_trials": 0}],
    "WarmStart": [{"kernel": "rbf"}],
}


@pytest.mark.parametrize(
    ("name", "params"), [(name, each) for name in INVALID for each in INVALID[name]]
)
def test_check_params_raises_without_fit(name, params):
    surrogate = getattr(surrogates, name)(**params)
    [parameter] = params
    with pytest.raises(ValueError, match=parameter):
        surrogate.check_params()
    with pytest.raises(ValueError, match=parameter):
        surrogate.fit([])


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_check_params_accepts_defaults(name):
    make_surrogate(name).check_params()


def test_every_surrogate_with_checked_parameters_is_listed():
    classes = {name for name, _ in REGISTRY.values()}
    assert classes - set(INVALID) == {"Random"}
