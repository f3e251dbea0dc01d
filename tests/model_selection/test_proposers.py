"""Proposers: batches of a grid or of a surrogate, until budget, time or space is exhausted."""

import math

import numpy as np
import pytest
from scipy.stats import loguniform, uniform
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import KFold, ParameterGrid
from sklearn.svm import SVC

from sktransfer import Archive, TransferOptimizer, TransferSearchCV
from sktransfer.archive import Selection
from sktransfer.exceptions import SurrogateWarning, TransferWarning
from sktransfer.model_selection._history import find_history
from sktransfer.model_selection._plan import SearchPlan
from sktransfer.model_selection._proposers import (
    Batch,
    GridProposer,
    ModelProposer,
    Proposer,
    format_transfer_summary,
    make_proposer,
)
from sktransfer.model_selection._results import Candidate, Influence
from sktransfer.model_selection._stopping import StoppingRule
from sktransfer.optimizer import Proposal
from sktransfer.surrogates import GP, TaskPrior

X, y = load_iris(return_X_y=True)
FOLDS = list(KFold(3).split(X))
SPACE = {"C": loguniform(1e-2, 1e2), "gamma": loguniform(1e-3, 1e1)}
GRIDS = {
    "dict": {"kernel": ["rbf", "linear"], "C": [10, 0.1, 1]},
    "list": [{"kernel": ["rbf"], "gamma": [1, 0.1]}, {"kernel": ["poly"], "degree": [3, 2]}],
}


def make_plan(space=SPACE, **params):
    params = {"archive": None, "random_state": 0, "n_iter": 7} | params
    return SearchPlan.from_search(TransferSearchCV(SVC(), space, **params), n_splits=len(FOLDS))


def make(space=SPACE, **params):
    """A proposer as a search makes it."""
    plan = make_plan(space, **params)
    return make_proposer(plan, find_history(plan, X, y, {}, FOLDS))


def make_rows(score):
    """Fold results as scikit-learn's ``_fit_and_score`` returns them."""
    row = {"fit_error": None, "fit_time": 0.1, "score_time": 0.1, "n_test_samples": 50}
    return [{**row, "test_scores": score} for _ in FOLDS]


def evaluate(batch):
    """Candidates of a batch whose score is best at C = 1."""
    scores = [-(math.log10(params["C"]) ** 2) for params in batch.params]
    return [
        Candidate.from_rows(params, make_rows(score), True, None, True)
        for params, score in zip(batch.params, scores, strict=True)
    ]


def run(proposer):
    """All batches of a proposer, each evaluated before the next."""
    batches = []
    while batch := proposer.next_batch():
        proposer.tell(evaluate(batch))
        batches.append(batch)
    return batches


# -- batches ---------------------------------------------------------------------------------------


def test_batch_has_params_and_columns_of_its_proposals():
    batch = Batch([Proposal({"C": 1}, "grid"), Proposal({"C": 2}, "model", 0.5, 0.1)])
    assert len(batch) == 2
    assert batch.params == [{"C": 1}, {"C": 2}]
    assert batch.columns["origin"] == ["grid", "model"]
    np.testing.assert_array_equal(batch.columns["predicted_mean"], [math.nan, 0.5])
    np.testing.assert_array_equal(batch.columns["predicted_std"], [math.nan, 0.1])


def test_base_class_does_not_propose():
    with pytest.raises(TypeError, match="Proposer must define _propose"):
        Proposer(1, 1, StoppingRule(), Selection((), ())).next_batch()


def test_proposer_is_chosen_by_the_size_of_the_space():
    assert isinstance(make(GRIDS["dict"], n_iter=6), GridProposer)
    assert isinstance(make(GRIDS["dict"], n_iter=5), ModelProposer)
    assert isinstance(make(SPACE), ModelProposer)


@pytest.mark.parametrize("space", [SPACE, GRIDS["dict"]], ids=["model", "grid"])
def test_first_batch_exists_after_the_timeout(space):
    proposer = make(space, timeout=0, batch_size=2)
    batch = proposer.next_batch()
    assert len(batch) == 2
    proposer.tell([])
    assert proposer.next_batch() is None
    assert proposer.next_batch() is None


# -- grids -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("grid", GRIDS)
def test_grid_is_one_batch_in_order_of_parameter_grid(grid):
    proposer = make(GRIDS[grid])
    assert proposer.is_one_batch and proposer.n_batches == 1
    batch = proposer.next_batch()
    assert batch.params == list(ParameterGrid(GRIDS[grid]))
    assert set(batch.columns["origin"]) == {"grid"}
    assert np.isnan(batch.columns["predicted_mean"]).all()
    assert proposer.next_batch() is None


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("batch_size", [1, 4, 100])
def test_grid_with_timeout_is_split_into_batches(grid, batch_size):
    proposer = make(GRIDS[grid], timeout=1e6, batch_size=batch_size)
    expected = list(ParameterGrid(GRIDS[grid]))
    assert not proposer.is_one_batch
    assert proposer.n_batches == math.ceil(len(expected) / batch_size)
    batches = []
    while batch := proposer.next_batch():
        batches.append(batch)
    assert len(batches) == proposer.n_batches
    assert [params for batch in batches for params in batch.params] == expected
    assert proposer.origins == ["grid"] * len(expected)


def test_grid_has_no_surrogate_and_no_similarity():
    proposer = make(GRIDS["dict"])
    assert proposer.surrogate is None
    assert proposer.influence() == Influence()
    assert proposer.selection == Selection((), ())


# -- surrogates ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_iter", "batch_size", "sizes"), [(7, 3, [3, 3, 1]), (4, 9, [4])])
def test_model_proposes_n_iter_configurations_in_batches(n_iter, batch_size, sizes):
    proposer = make(n_iter=n_iter, batch_size=batch_size)
    assert not proposer.is_one_batch and proposer.n_batches == len(sizes)
    assert [len(batch) for batch in run(proposer)] == sizes
    assert len(proposer.origins) == n_iter


def test_model_learns_from_told_candidates():
    proposer = make(n_iter=14, surrogate="gp")
    found = [params["C"] for batch in run(proposer) for params in batch.params]
    assert proposer.origins == ["space-filling"] * 4 + ["model"] * 10
    assert min(abs(math.log10(C)) for C in found[4:]) < 0.1


def test_model_proposals_are_those_of_the_optimizer():
    proposer = make(surrogate="gp")
    seed = make_plan(surrogate="gp").seed
    optimizer = TransferOptimizer(SPACE, surrogate="gp", random_state=seed)
    for batch in run(proposer):
        for params in batch.params:
            assert optimizer.ask() == [params]
            optimizer.tell(params, -(math.log10(params["C"]) ** 2))


def test_model_ends_when_the_space_is_exhausted():
    proposer = make({"C": [1, 1, 1, 1, 2]}, n_iter=4)
    assert sorted(params["C"] for batch in run(proposer) for params in batch.params) == [1, 2]


def test_failing_surrogate_is_replaced_by_random_search(monkeypatch):
    def fail(self, target):
        raise RuntimeError("failed")

    monkeypatch.setattr(GP, "posterior", fail)
    proposer = make(surrogate="gp", n_iter=8)
    with pytest.warns(SurrogateWarning, match=r"GP.*failed.*continues at random") as caught:
        batches = run(proposer)
    assert len(caught) == 1
    assert sum(map(len, batches)) == 8
    assert set(proposer.origins[4:]) == {"random"}
    assert type(proposer.surrogate).__name__ == "Random"


@pytest.fixture
def archive(tmp_path):
    """An archive with one past search, on other data."""
    archive = Archive(tmp_path / "past")
    search = TransferSearchCV(SVC(), SPACE, n_iter=5, cv=2, archive=archive, random_state=0)
    search.set_params(surrogate="random", refit=False).fit(*load_wine(return_X_y=True))
    return archive


def test_model_uses_selected_past_tasks(archive):
    proposer = make(archive=archive, surrogate="warm-start", n_iter=2)
    [past] = archive
    run(proposer)
    assert [task.id for task in proposer.selection.used] == [past.id]
    assert proposer.origins[0] == f"task {past.id}"
    found = proposer.influence()
    assert len(found.similarity) == len(found.weight) == len(found.basis) == 1
    assert 0 <= found.weight[0] <= 1 and 0 <= found.similarity[0] <= 1


def test_unknown_similarity_gives_a_warning(archive, monkeypatch):
    def fail(self, target):
        raise RuntimeError("failed")

    proposer = make(archive=archive, n_iter=1)
    run(proposer)
    monkeypatch.setattr(TaskPrior, "similarity", fail)
    with pytest.warns(TransferWarning, match=r"similarity .* is unknown"):
        assert proposer.influence() == Influence()


@pytest.mark.parametrize("verbose", [0, 1])
def test_transfer_summary_is_printed_if_verbose(archive, capsys, verbose):
    make(archive=archive, n_iter=1, verbose=verbose).next_batch()
    [past] = archive
    expected = f"Learning from 1 past search and the pretrained model, most from {past.id}.\n"
    assert capsys.readouterr().out == (expected if verbose else "")


def test_transfer_summary_without_past_tasks():
    optimizer = TransferOptimizer({"a": uniform(0, 1)}, random_state=0)
    optimizer.fit_surrogate()
    assert format_transfer_summary(optimizer, Selection((), ())) == (
        "No past search of this estimator and these parameters. Starting without transfer."
    )
