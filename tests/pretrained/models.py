"""A small pretrained model, made in a moment, for tests."""

import numpy as np

from sktransfer import profile
from sktransfer.pretrained._assembly import begin_arrays, finish_arrays, measure_inputs
from sktransfer.pretrained._configurations import ConfigurationEncoder, Parameter
from sktransfer.pretrained._inputs import name_numbers
from sktransfer.pretrained._training import TrainingOptions, TrainingSurface, train_model

METRICS = ("balanced_accuracy", "accuracy", "roc_auc_ovr", "neg_log_loss")
ENCODER = ConfigurationEncoder(
    "SVC",
    [
        Parameter("C", low=1e-3, high=1e3, log=True, default=1.0),
        Parameter("gamma", low=1e-5, high=1e1, log=True, default="scale"),
        Parameter("kernel", values=("rbf", "poly"), default="rbf"),
    ],
)
FAST = TrainingOptions(
    n_embedding=3,
    encoder_layers=(8,),
    head_layers=(32, 16),
    n_epochs=300,
    n_configurations=30,
    learning_rate=0.01,
)


def make_data(seed, n=80, p=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int)


def make_profiles(n=12):
    return [profile(*make_data(seed)) for seed in range(n)]


def make_surface(profiles, best=0.5, n=30, seed=0):
    """Scores that are best where the place of C is `best`, on every data set."""
    rng = np.random.default_rng(seed)
    codes = rng.uniform(-1, 1, size=(len(profiles), n, ENCODER.width + 1))
    score = -((codes[:, :, :1] - best) ** 2)
    z = (score - score.mean(axis=1, keepdims=True)) / score.std(axis=1, keepdims=True)
    m = len(profiles)
    levels = np.tile([0.8, 0.8, 0.8, 0.8, -2.0, -2.0, -2.0, -2.0], (m, 1))
    return TrainingSurface(
        "SVC", np.arange(m), codes, np.repeat(z, 4, axis=2), np.ones((m, 4)), levels
    )


def make_arrays(best=0.5, n_members=2, options=FAST):
    profiles = make_profiles()
    names = sorted(name_numbers(profiles[0]))
    numbers = np.array([[name_numbers(p).get(n, np.nan) for n in names] for p in profiles])
    inputs = measure_inputs(numbers)
    arrays = begin_arrays("classification", METRICS, names, inputs, {"SVC": ENCODER}, {"made": "x"})
    low, high, mean, std = inputs
    features = np.nan_to_num((np.clip(numbers, low, high) - mean) / std)
    surface = make_surface(profiles, best)
    members = [
        train_model(features, [surface], TrainingOptions(**{**vars(options), "seed": seed}))
        for seed in range(n_members)
    ]
    return finish_arrays(arrays, members, numbers)
