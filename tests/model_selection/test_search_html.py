"""The HTML of a search in a notebook."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
import sklearn
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.svm import SVC

from sktransfer import Archive, Task, TransferSearchCV

X, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
SPACE = {"C": loguniform(1e-2, 1e2)}


def make_search(**changes):
    settings = {"n_iter": 5, "cv": 2, "archive": None, "random_state": 0} | changes
    return TransferSearchCV(SVC(), SPACE, **settings)


@pytest.fixture
def fitted(tmp_path):
    archive = Archive(tmp_path)
    trials = [({"C": 10.0**k}, -abs(k - 1.0)) for k in range(-2, 3)]
    archive.append(Task.from_trials(SPACE, trials, estimator=SVC(), id="past"))
    return make_search(archive=Archive(tmp_path, readonly=True)).fit(X, y)


class WellFormed(HTMLParser):
    """Checks that elements are closed in their order."""

    def __init__(self):
        super().__init__()
        self.open, self.tags = [], set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag not in {"path", "circle", "br", "input", "link", "meta", "img"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in {"path", "circle"}:
            assert self.open.pop() == tag


def test_fitted_search_shows_score_parameters_and_history(fitted):
    html = fitted._repr_html_()
    assert f"{fitted.best_score_:.6g}" in html
    assert f"{fitted.best_params_['C']:.6g}" in html
    assert "1 past search used" in html and "<th>past</th>" in html
    assert fitted._repr_mimebundle_()["text/html"].startswith("<style>.sktransfer-search")
    svg = html[html.index("<svg") : html.index("</svg>") + len("</svg>")]
    circles = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}circle")
    assert len(list(circles)) == 5


def test_summary_is_well_formed_and_needs_no_network(fitted):
    html = fitted._repr_html_()
    ours = html[: html.index("</details>") + len("</details></div>")]
    parser = WellFormed()
    parser.feed(ours)
    assert parser.open == []
    assert "script" not in parser.tags
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)", ours) == []


def test_diagram_of_scikit_learn_is_still_there(fitted):
    assert "SVC" in fitted._repr_html_()
    unfitted = make_search()
    assert "sktransfer-search" not in unfitted._repr_html_()
    assert "sk-top-container" in unfitted._repr_html_() + fitted._repr_html_()
    with sklearn.config_context(display="text"):
        assert not hasattr(fitted, "_repr_html_")
        assert "text/html" not in fitted._repr_mimebundle_()


class Named(ClassifierMixin, BaseEstimator):
    """An estimator with any value as its parameter."""

    def __init__(self, a=None):
        self.a = a

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_values_are_escaped_and_shortened():
    space = {"a": ["<script>alert(1)</script>" + "x" * 500]}
    search = TransferSearchCV(Named(), space, archive=None, cv=2).fit(X, y)
    ours = search._repr_html_().partition("sk-top-container")[0]
    assert "<script>alert" not in ours and "&lt;script&gt;alert" in ours
    assert "x" * 100 not in ours.partition("No past search")[0]


@pytest.mark.parametrize(
    "changes",
    [
        {"refit": False},
        {"scoring": ["accuracy", "f1"], "refit": "f1"},
        {"scoring": ["accuracy", "f1"], "refit": False},
        {"n_iter": 1},
    ],
    ids=str,
)
def test_any_fitted_search_has_a_summary(changes):
    html = make_search(**changes).fit(X, y)._repr_html_()
    assert "sktransfer-search" in html and "No past search was used." in html
    assert "candidate 1: " in html and "best score" in html
