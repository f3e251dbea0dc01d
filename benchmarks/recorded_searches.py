"""Small searches of every kind, through the public names only: what `same_proposals` records.

Every surrogate, spaces of all kinds, with and without archives, batches, failing fits, interrupted
and resumed searches, suggestions, ask and tell.
"""

from __future__ import annotations

import math
import tempfile
import time
from pathlib import Path

SURROGATES = [
    *("ablr", "auto", "bohamiann", "box", "common-surface", "copula-gp", "copula-ts", "deep-gp"),
    *("dist-blr", "dist-gp", "dklm", "dngo", "fsbo", "gp", "manual-blr", "manual-gp"),
    *("multi-blr", "multi-gp", "random", "rgpe", "scot", "task-prior", "tst", "warm-start"),
]


# -- data, estimators and spaces -----------------------------------------------------------------


def table(name):
    """Return a small reproducible data set."""
    import numpy as np
    from sklearn import datasets
    from sklearn.preprocessing import scale

    if name.startswith("synthetic"):
        seed = int(name.removeprefix("synthetic"))
        return datasets.make_classification(
            n_samples=120 + 10 * seed,
            n_features=6 + seed,
            n_informative=4,
            flip_y=0.1,
            random_state=seed,
        )
    if name.startswith("regression"):
        seed = int(name.removeprefix("regression"))
        return datasets.make_friedman1(n_samples=120 + 10 * seed, noise=1.0, random_state=seed)
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:150]
    return scale(X[rows]), y[rows]


def spaces():
    """Map the name of a kind of search to its estimator and space."""
    from scipy.stats import loguniform, randint, uniform
    from sklearn.decomposition import PCA
    from sklearn.linear_model import ElasticNet, LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, SVR
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    svc = {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-5, 1e1)}
    tree = {
        "max_depth": randint(1, 20),
        "min_samples_leaf": randint(1, 30),
        "criterion": ["gini", "entropy"],
        "ccp_alpha": loguniform(1e-5, 1e-1),
    }
    return {
        "svc": (SVC(), svc),
        "svc-coef0": (
            SVC(kernel="poly"),
            {"C": loguniform(1e-3, 1e3), "degree": [2, 3, 4], "coef0": uniform(0, 2)},
        ),
        "tree": (DecisionTreeClassifier(random_state=0), tree),
        "pipeline": (
            make_pipeline(StandardScaler(), PCA(), SVC()),
            {
                "pca__n_components": [2, 3, 4],
                "svc__C": loguniform(1e-3, 1e3),
                "svc__gamma": loguniform(1e-4, 1e1),
            },
        ),
        "list-of-dict": (
            SVC(),
            [
                {"kernel": ["rbf"], "C": loguniform(1e-2, 1e3), "gamma": loguniform(1e-4, 1e1)},
                {"kernel": ["linear"], "C": loguniform(1e-3, 1e1)},
                {"kernel": ["poly"], "degree": [2, 3], "C": [0.1, 1, 10]},
            ],
        ),
        "grid": (SVC(), {"C": [0.1, 1, 10], "gamma": [0.01, 0.1]}),
        "large-grid": (
            SVC(),
            {"C": [0.01, 0.1, 1, 10, 100, 1000], "gamma": [0.001, 0.01, 0.1, 1, 10]},
        ),
        "knn": (
            KNeighborsClassifier(),
            {"n_neighbors": randint(1, 40), "weights": ["uniform", "distance"], "p": [1, 2]},
        ),
        "logistic": (
            make_pipeline(StandardScaler(), LogisticRegression(max_iter=200)),
            {
                "logisticregression__C": loguniform(1e-4, 1e3),
                "logisticregression__class_weight": [None, "balanced"],
            },
        ),
        "svr": (SVR(), {**svc, "epsilon": loguniform(1e-3, 1)}),
        "tree-regression": (
            DecisionTreeRegressor(random_state=0),
            {"max_depth": randint(1, 20), "min_samples_leaf": randint(1, 30)},
        ),
        "elastic-net": (ElasticNet(), {"alpha": loguniform(1e-4, 10), "l1_ratio": uniform(0, 1)}),
        "failing": (
            SVC(),
            {"C": [-1.0, 0.1, 1.0, 10.0, 100.0, -2.0, 1000.0], "gamma": [0.001, 0.01, 0.1, -1.0]},
        ),
        "one-parameter": (SVC(), {"C": loguniform(1e-3, 1e3)}),
    }


REGRESSIONS = {"svr", "tree-regression", "elastic-net"}


# -- searches ------------------------------------------------------------------------------------


def grow_archives(folder):
    """Create an archive of past searches for each kind of estimator, and a misleading one."""
    from sktransfer import Archive, Task, TransferSearchCV

    kinds = {"svc": "svc", "tree": "tree", "pipeline": "svc", "svr": "svr", "knn": "knn"}
    for name, kind in kinds.items():
        estimator, space = spaces()[kind]
        prefix = "regression" if kind in REGRESSIONS else "synthetic"
        for seed in range(7):
            TransferSearchCV(
                estimator,
                space,
                n_iter=14,
                cv=3,
                surrogate="random",
                archive=folder / name,
                random_state=seed,
            ).fit(*table(f"{prefix}{seed}"))
            time.sleep(0.001)  # records are ordered by their time
    # The best past settings are the worst ones of the target.
    estimator, space = spaces()["svc"]
    archive = Archive(folder / "misleading")
    for seed in range(4):
        search = TransferSearchCV(
            estimator, space, n_iter=14, cv=3, surrogate="random", archive=None, random_state=seed
        )
        X, y = table(f"synthetic{seed}")
        search.fit(X, y)
        from sktransfer import profile

        trials = [
            (p, 1 - s)
            for p, s in zip(
                search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
            )
        ]
        archive.append(
            Task.from_trials(
                space, trials, profile(X, y), estimator=estimator, metrics=("accuracy",)
            )
        )
        time.sleep(0.001)


def cases():
    """Map name to a function that takes the folder of archives and returns an outcome."""
    found = {}
    for name in SURROGATES:
        found[f"past/{name}"] = searching("svc", "wine", archive="svc", surrogate=name)
        found[f"mixed/{name}"] = searching(
            "tree", "breast_cancer", archive="tree", surrogate=name, n_iter=6
        )
        found[f"alone/{name}"] = searching("svc", "iris", surrogate=name)
        found[f"suggest/{name}"] = suggesting("svc", "wine", "svc", name)
    for kind in spaces():
        data = "regression8" if kind in REGRESSIONS else "wine"
        found[f"space/{kind}"] = searching(kind, data)
        found[f"starter/{kind}"] = searching(kind, data, archive="starter")
        found[f"own/{kind}"] = searching(
            kind, data, archive="svr" if kind in REGRESSIONS else "svc"
        )
    for size in (2, 3, 4):
        found[f"batch/{size}"] = searching("svc", "wine", archive="svc", batch_size=size)
        found[f"batch-alone/{size}"] = searching("tree", "wine", batch_size=size)
    for name in ("auto", "dist-gp", "gp", "warm-start"):
        found[f"misleading/{name}"] = searching(
            "svc", "wine", archive="misleading", surrogate=name, n_iter=10
        )
        found[f"failing/{name}"] = searching(
            "failing", "iris", archive="svc", surrogate=name, n_iter=12
        )
        found[f"resumed/{name}"] = resuming("svc", "wine", "svc", name)
        found[f"interrupted/{name}"] = interrupting("svc", "wine", "svc", name)
        found[f"ask-tell/{name}"] = asking(name)
    found["metrics/two"] = searching(
        "svc", "wine", archive="svc", scoring=["accuracy", "neg_log_loss_like"]
    )
    found["metrics/auc"] = searching("knn", "wine", archive="knn", scoring="roc_auc_ovr")
    found["metrics/log-loss"] = searching("knn", "wine", archive="starter", scoring="neg_log_loss")
    found["seed/other"] = searching("svc", "wine", archive="svc", random_state=5)
    found["pipeline/own"] = searching("pipeline", "wine", archive="pipeline")
    return found


def searching(kind, data, archive=None, n_iter=8, scoring=None, random_state=0, **params):
    """Return a case that fits a search."""

    def run(folder):
        from sktransfer import TransferSearchCV

        estimator, space = spaces()[kind]
        search = TransferSearchCV(
            estimator,
            space,
            n_iter=n_iter,
            cv=3,
            scoring=["accuracy", "balanced_accuracy"] if isinstance(scoring, list) else scoring,
            refit="accuracy" if isinstance(scoring, list) else True,
            archive=place(folder, archive),
            random_state=random_state,
            **params,
        )
        return outcome(search.fit(*table(data)))

    return run


def resuming(kind, data, archive, surrogate):
    """Return a case that ends after four trials and is resumed with more."""

    def run(folder):
        from sktransfer import TransferSearchCV

        estimator, space = spaces()[kind]
        own = place(folder, archive, copy=True)
        given = {"cv": 3, "surrogate": surrogate, "archive": own, "resume": True, "random_state": 3}
        TransferSearchCV(estimator, space, n_iter=4, **given).fit(*table(data))
        return outcome(TransferSearchCV(estimator, space, n_iter=7, **given).fit(*table(data)))

    return run


class Interrupting:
    """A scorer that raises KeyboardInterrupt once, at its n-th call."""

    calls_left: int | None = None

    def __call__(self, estimator, X, y):
        if Interrupting.calls_left is not None:
            Interrupting.calls_left -= 1
            if Interrupting.calls_left < 0:
                Interrupting.calls_left = None
                raise KeyboardInterrupt
        return estimator.score(X, y)


def interrupting(kind, data, archive, surrogate):
    """Return a case that is interrupted in its fourth trial and resumed."""

    def run(folder):
        from sktransfer import TransferSearchCV

        estimator, space = spaces()[kind]
        own = place(folder, archive, copy=True)
        given = {"cv": 3, "surrogate": surrogate, "archive": own, "resume": True, "random_state": 3}
        search = TransferSearchCV(estimator, space, n_iter=6, scoring=Interrupting(), **given)
        Interrupting.calls_left = 10
        try:
            search.fit(*table(data))
        except KeyboardInterrupt:
            calls = 3 * 3
            Interrupting.calls_left = 100
            search.fit(*table(data))
            calls += 100 - Interrupting.calls_left
            Interrupting.calls_left = None
            return {**outcome(search), "calls": calls}
        raise RuntimeError("The search was not interrupted.")

    return run


def suggesting(kind, data, archive, surrogate):
    """Return a case that asks for suggestions."""

    def run(folder):
        from sktransfer import suggest

        estimator, space = spaces()[kind]
        found = suggest(
            estimator,
            space,
            *table(data),
            n=3,
            archive=place(folder, archive),
            surrogate=surrogate,
            random_state=0,
        )
        return {
            "params": [dict(each.params) for each in found],
            "scores": [each.mean for each in found],
            "predicted_std": [each.std for each in found],
        }

    return run


def asking(surrogate):
    """Return a case of ask and tell, with past tasks, a pool and a failure."""

    def run(folder):
        from scipy.stats import loguniform

        from sktransfer import Task, TransferOptimizer

        space = {"x": loguniform(1e-3, 1e3), "k": ["a", "b"]}
        grid = [{"x": 10.0**i, "k": k} for i in range(-3, 4) for k in "ab"]
        tasks = [
            Task.from_trials(
                space, [(p, -abs(math.log10(p["x"]) - shift) - (p["k"] == "b")) for p in grid]
            )
            for shift in (0.5, 1.0, 1.5)
        ]
        optimizer = TransferOptimizer(space, tasks, surrogate=surrogate, random_state=0)
        params, scores = [], []
        for number in range(8):
            [asked] = optimizer.ask(pool=grid if number % 3 == 2 else None)
            score = (
                math.nan
                if number == 1
                else -abs(math.log10(asked["x"]) - 1.2) - (asked["k"] == "b")
            )
            optimizer.tell(asked, score)
            params.append(asked)
            scores.append(score)
        return {"params": params, "scores": scores}

    return run


def place(folder, archive, copy=False):
    """Return the `archive` argument of a search; a copy for searches that write."""
    import shutil

    from sktransfer import Archive

    if archive is None:
        return None
    if archive == "starter":
        return Archive("auto", readonly=True)
    if not copy:
        return Archive(folder / archive, readonly=True)
    own = Path(tempfile.mkdtemp(dir=folder)) / archive
    shutil.copytree(folder / archive, own)
    return own


def outcome(search):
    """Return the proposals of a search and their results as plain data."""
    results = search.cv_results_
    key = "mean_test_score" if "mean_test_score" in results else "mean_test_accuracy"
    return {
        "params": [{name: plain(value) for name, value in p.items()} for p in results["params"]],
        "scores": [float(score) for score in results[key]],
        "origin": [origin.split()[0] for origin in results["origin"]],
        "predicted_mean": [float(value) for value in results["predicted_mean"]],
        "predicted_std": [float(value) for value in results["predicted_std"]],
        "similarity": sorted(
            -1.0 if row["similarity"] is None else row["similarity"] for row in search.source_tasks_
        ),
        "best_index": int(search.best_index_),
    }


def plain(value):
    """Return plain values as they are, other values as text."""
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)
