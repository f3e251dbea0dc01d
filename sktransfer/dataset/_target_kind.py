"""What an estimator takes a target for: classes or amounts."""

from __future__ import annotations

from sklearn.base import BaseEstimator, is_classifier, is_regressor

TARGET_KINDS = ("classification", "regression")


def target_kind(estimator: BaseEstimator | None) -> str | None:
    """The kind of target that an estimator predicts; None if it does not tell.

    >>> from sklearn.linear_model import Ridge
    >>> target_kind(Ridge()), target_kind(None)
    ('regression', None)
    """
    try:
        if is_classifier(estimator):
            return "classification"
        return "regression" if is_regressor(estimator) else None
    except Exception:  # estimators of other packages may lack the tags of scikit-learn
        return None
