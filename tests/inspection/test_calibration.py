"""`CalibrationDisplay`: predicted against observed."""

import numpy as np
import pytest

from sktransfer.inspection import CalibrationDisplay


def test_coverage_is_that_of_a_normal_distribution(rng):
    observed = rng.normal(0.5, 0.1, 4000)
    display = CalibrationDisplay(observed, np.full(4000, 0.5), np.full(4000, 0.1))
    assert display.coverage[1] == pytest.approx(0.683, abs=0.03)
    assert display.coverage[2] == pytest.approx(0.954, abs=0.02)
    overconfident = CalibrationDisplay(observed, np.full(4000, 0.5), np.full(4000, 0.01))
    assert overconfident.coverage[2] < 0.2


def test_trials_without_prediction_or_score_do_not_count(search):
    display = CalibrationDisplay([0.5, np.nan, 0.7], [0.5, 0.5, np.nan], [0.1, 0.1, np.nan])
    assert display.n_predicted == 1 and display.coverage == {1: 1.0, 2: 1.0}
    fitted = CalibrationDisplay.from_estimator(search)
    assert fitted.n_predicted == np.isfinite(search.cv_results_["predicted_mean"]).sum() > 0
    assert f"{fitted.n_predicted} predictions" in fitted.ax_.get_xlabel()
    assert fitted.ax_.get_xlim() == fitted.ax_.get_ylim()
    assert fitted.ax_.get_ylabel() == "Observed: mean test score"


def test_search_without_a_model_gives_a_sentence(grid, texts):
    display = CalibrationDisplay.from_estimator(grid)
    assert texts(display.figure_) == ["No score was predicted: the search had no model."]
    assert display.points_ is None and np.isnan(display.coverage[1])


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="must have one length"):
        CalibrationDisplay([0.5], [0.5, 0.6], [0.1, 0.1])
