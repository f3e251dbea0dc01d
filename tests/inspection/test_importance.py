"""Functional ANOVA and `ImportanceDisplay`."""

import numpy as np
import pytest
from scipy.stats import loguniform, randint, uniform
from sklearn.svm import SVC, SVR

from sktransfer import Archive, Space, Task
from sktransfer.inspection import ImportanceDisplay
from sktransfer.inspection._functional_anova import BRANCH, decompose_variance
from tests.inspection.conftest import SPACE


def unit_space(d):
    return Space.parse({f"x{j}": uniform(0, 1) for j in range(d)})


def test_decomposition_of_the_ishigami_function_is_exact():
    """Its effects are known in closed form (Ishigami and Homma, 1990)."""

    def ishigami(codes):
        a, b, c = (np.pi * (2 * codes - 1)).T
        return np.sin(a) + 7 * np.sin(b) ** 2 + 0.1 * c**4 * np.sin(a)

    found = decompose_variance(ishigami, unit_space(3), n_samples=4096)
    np.testing.assert_allclose(found.main, [0.3139, 0.4424, 0.0], atol=0.02)
    np.testing.assert_allclose(found.total, [0.5576, 0.4424, 0.2437], atol=0.02)
    assert next(iter(found.pairs)) == ("x0", "x2")
    assert found.pairs["x0", "x2"] == pytest.approx(0.2437, abs=0.03)
    assert found.pairs["x0", "x1"] == pytest.approx(0.0, abs=0.03)


def test_categories_count_by_the_number_of_their_values():
    space = Space.parse({"a": ["p", "q", "r"], "b": uniform(0, 1)})
    found = decompose_variance(lambda codes: 1.0 * (codes[:, 0] < 0.3), space, 2048)
    assert found.names == ["a", "b"]
    np.testing.assert_allclose(found.main, [1.0, 0.0], atol=0.02)
    # The variance of the indicator of one of three values is 2/9, that of b is 1/12.
    found = decompose_variance(lambda codes: (codes[:, 0] < 0.3) + codes[:, 1], space, 2048)
    np.testing.assert_allclose(found.main, [8 / 11, 3 / 11], atol=0.02)


def test_choice_between_branches_is_a_parameter():
    space = Space.parse([{"a": uniform(0, 1)}, {"b": uniform(0, 1)}])
    found = decompose_variance(lambda codes: codes[:, 0], space)
    assert found.names == [BRANCH, "a", "b"]
    np.testing.assert_allclose(found.total, [1, 0, 0], atol=1e-9)
    # b is inactive in the first branch, so it has only half of its effect.
    inside = decompose_variance(lambda codes: codes[:, 2], space)
    assert inside.total[2] == pytest.approx(1.0, abs=0.05)
    assert inside.main[0] == pytest.approx(0.0, abs=0.02)


def test_fixed_columns_are_unknown_and_constants_have_no_importance():
    found = decompose_variance(lambda codes: codes.sum(axis=1), unit_space(2), 64, {1: 0.3})
    np.testing.assert_allclose(found.main, [1.0, np.nan], atol=0.05)
    assert found.pairs == {}
    flat = decompose_variance(lambda codes: np.full(len(codes), 1e6), unit_space(2), 64)
    assert flat.main.tolist() == flat.total.tolist() == [0, 0]
    with pytest.raises(ValueError, match="n_samples=1 must be at least 2"):
        decompose_variance(lambda codes: codes[:, 0], unit_space(1), 1)


def test_effects_are_shares(search):
    display = ImportanceDisplay.from_estimator(search, n_samples=512)
    assert display.names == ["C", "gamma", "kernel"]
    assert display.main.shape == display.total.shape == (1, 3)
    assert (display.main >= 0).all() and (display.total <= 1).all()
    assert (display.total >= display.main - 0.05).all()
    assert display.main.sum() <= 1.05
    assert "Share of the variance" in display.ax_.get_xlabel()


def make_archive(path, n_tasks=3, n_trials=12):
    """Past searches whose scores depend on gamma only, and of which one fixed the kernel."""
    archive, rng = Archive(path), np.random.default_rng(0)
    space = Space.parse(SPACE, SVC())
    for number in range(n_tasks):
        params = space.sample(n_trials, rng)
        for each in params:
            each["kernel"] = "rbf" if number == 0 else each["kernel"]
        trials = [(each, -abs(np.log10(each["gamma"]) + 1.5)) for each in params]
        archive.append(Task.from_trials(space, trials, id=f"t{number}"))
    return archive


def test_archive_has_one_row_for_each_search(tmp_path):
    display = ImportanceDisplay.from_archive(make_archive(tmp_path), SVC(), SPACE)
    assert display.main.shape == (3, 3)
    assert display.task_ids == ["t0", "t1", "t2"]
    assert (np.nanargmax(display.main, axis=1) == 1).all()
    assert (display.main[:, 1] > 0.6).all()
    assert np.isnan(display.main[0, 2]) and np.isfinite(display.main[1:, 2]).all()
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert labels[0] == "gamma"
    assert len(display.bars_.patches) == 3
    newest = ImportanceDisplay.from_archive(tmp_path, SVC(), SPACE, max_tasks=1)
    assert newest.task_ids == ["t2"]


@pytest.mark.parametrize(("n_tasks", "n_trials"), [(0, 0), (2, 4)])
def test_archive_without_usable_searches_gives_a_sentence(tmp_path, texts, n_tasks, n_trials):
    archive = make_archive(tmp_path, n_tasks, n_trials)
    display = ImportanceDisplay.from_archive(archive, SVC(), SPACE)
    assert display.main.shape == (0, 3) and display.bars_ is None
    assert texts(display.figure_) == ["No past search of this estimator has 8 successful trials."]
    other = ImportanceDisplay.from_archive(archive, SVR(), {"C": loguniform(1, 9)})
    assert other.bars_ is None


def test_only_the_most_important_parameters_are_shown():
    total = np.arange(20) / 20
    display = ImportanceDisplay([f"p{j}" for j in range(20)], total / 2, total).plot(max_shown=3)
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert labels == ["p19", "p18", "p17"]


def test_integers_are_parameters_too():
    space = Space.parse({"n": randint(1, 4), "x": uniform(0, 1)})
    found = decompose_variance(lambda codes: codes[:, 0], space)
    np.testing.assert_allclose(found.main, [1, 0], atol=0.02)
