"""
Score and time together
=======================

Which configuration is good enough, and how long does it take to fit?
"""

# %%
# Trees in a forest cost time. The search optimizes accuracy. The display shows which configurations
# nothing beats in both accuracy and time.
from scipy.stats import loguniform, randint
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier

from sktransfer import TransferSearchCV
from sktransfer.inspection import ImportanceDisplay, ParetoDisplay

X, y = load_digits(return_X_y=True)
search = TransferSearchCV(
    ExtraTreesClassifier(random_state=0),
    {
        "n_estimators": randint(5, 150),
        "max_features": loguniform(0.05, 1.0),
        "min_samples_leaf": randint(1, 12),
    },
    n_iter=20,
    cv=3,
    random_state=0,
)
search.fit(X[:900], y[:900])
display = ParetoDisplay.from_estimator(search)

# %%
# The same as numbers: the trials on the front, fastest first.
for number in display.front:
    params = search.cv_results_["params"][number]
    print(f"{display.scores[number]:.3f} in {display.fit_times[number]:.2f} s: {params}")

# %%
# Which parameter the accuracy depends on.
ImportanceDisplay.from_estimator(search)
