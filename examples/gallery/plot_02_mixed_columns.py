"""
A pipeline with mixed columns
=============================

Search the parameters of preprocessing and model together, on a table of numbers and categories.
"""

# %%
# A table of flats: two numbers, two categories and missing values.
import numpy as np
import pandas as pd
from scipy.stats import loguniform, randint
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from sktransfer import TransferSearchCV
from sktransfer.inspection import ParallelCoordinatesDisplay, SearchHistoryDisplay

rng = np.random.default_rng(0)
n = 400
flats = pd.DataFrame(
    {
        "area": rng.uniform(20, 150, n),
        "floor": rng.integers(0, 9, n).astype(float),
        "district": rng.choice(["north", "south", "center"], n),
        "heating": rng.choice(["gas", "district", "electric"], n),
    }
)
rent = 8 * flats["area"] + 200 * (flats["district"] == "center") + rng.normal(0, 60, n)
flats.loc[rng.random(n) < 0.1, "floor"] = np.nan

# %%
# Names of parameters are nested, as in GridSearchCV. Values may be strings, None or numbers.
columns = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), ["district", "heating"]),
    (SimpleImputer(), ["area", "floor"]),
)
model = RandomForestRegressor(n_estimators=40, random_state=0)
pipeline = Pipeline([("columns", columns), ("forest", model)])
search = TransferSearchCV(
    pipeline,
    {
        "columns__simpleimputer__strategy": ["mean", "median"],
        "forest__max_features": loguniform(0.1, 1.0),
        "forest__min_samples_leaf": randint(1, 20),
        "forest__max_depth": [None, 4, 8],
    },
    n_iter=12,
    cv=3,
    scoring="neg_mean_absolute_error",
    random_state=0,
)
search.fit(flats, rent)
search

# %%
# In the archive, ``forest__min_samples_leaf`` is a parameter of the forest, whatever the step is
# called. So this search could learn from past searches of bare forests.
SearchHistoryDisplay.from_estimator(search)

# %%
# Each line is a candidate. Lines that end high are good.
ParallelCoordinatesDisplay.from_estimator(search)
