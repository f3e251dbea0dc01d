"""
Racing: fewer fits
==================

A candidate that cannot become the best any more is stopped after its first folds.
"""

# %%
# All candidates are scored on the same ten folds. Each is compared with the best so far, fold by
# fold.
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import loguniform
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from sktransfer import TransferSearchCV

X, y = load_breast_cancer(return_X_y=True)
search = TransferSearchCV(
    make_pipeline(StandardScaler(), SVC()),
    {"svc__C": loguniform(1e-3, 1e3), "svc__gamma": loguniform(1e-5, 1e1)},
    n_iter=25,
    cv=10,
    racing=True,
    surrogate="random",
    archive=None,
    random_state=0,
).fit(X, y)
n_folds = search.cv_results_["n_folds_evaluated"]
print(f"{n_folds.sum()} of {10 * len(n_folds)} fits, best score {search.best_score_:.3f}")

# %%
# Scores of the folds that were not evaluated are NaN. They are white here. The best candidate has
# all folds.
scores = np.array([search.cv_results_[f"split{fold}_test_score"] for fold in range(10)])
figure, axes = plt.subplots(figsize=(8, 3.2), layout="constrained")
extent = (0.5, 25.5, 10.5, 0.5)  # candidates and folds are counted from 1
image = axes.imshow(scores, aspect="auto", vmin=0.85, vmax=1, cmap="viridis", extent=extent)
axes.plot(search.best_index_ + 1, 0.1, "v", color="black", clip_on=False)
axes.set(xlabel="Candidate (the mark is above the best)", ylabel="Fold", ylim=(10.5, 0.5))
axes.set(xticks=[1, 5, 10, 15, 20, 25], yticks=[1, 4, 7, 10])
figure.colorbar(image, label="Accuracy", extend="min")
