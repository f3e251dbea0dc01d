"""Draw the pictures of the README: python examples/readme_pictures.py

The figure of the measured speed-up shows the tables of docs/results/first_trials.md.
"""

import re
from pathlib import Path

import matplotlib.pyplot as plt
from scipy.stats import loguniform
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from sktransfer import Archive, TransferSearchCV
from sktransfer.inspection import ImportanceDisplay, SearchHistoryDisplay, SurfaceDisplay

DOCS = Path(__file__).parents[1] / "docs"
FOLDER = DOCS / "images"
SEARCHES = {  # rows of the tables, and how they are named and drawn
    "random search": ("random search", "--", "#767676"),
    "plain GP": ("Bayesian optimization without transfer", "-", "#56B4E9"),
    "shipped": ("sktransfer as installed", "-", "#D55E00"),
}


def read_regrets(page, section):
    """Trials and the mean regret of each search after them, from the first table of a section."""
    parts = page.split(f"\n## {section}\n")[1].split("\n\n")
    table = next(part for part in parts if part.startswith("|"))
    rows = [re.split(r" *\| *", line.strip("| ")) for line in table.splitlines()]
    trials = [int(cell) for cell in rows[0][2:]]
    means = {row[1]: [float(cell) for cell in row[2:]] for row in rows if row[0] == "mean"}
    return trials, means


def draw_speed_up():
    """Regret after each trial, on data sets that had no part in pretraining."""
    page = (DOCS / "results" / "first_trials.md").read_text(encoding="utf-8")
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for ax, (section, name) in zip(
        axes, {"Classification": "Classifiers", "Regression": "Regressors"}.items(), strict=True
    ):
        trials, means = read_regrets(page, section)
        for search, (label, line, color) in SEARCHES.items():
            ax.plot(trials, means[search], line, marker="o", ms=4, color=color, label=label)
        ax.set(title=name, xlabel="Trials (log scale)", xscale="log", ylim=(0, None))
        ax.set_xticks(trials, labels=trials, minor=False)
        ax.minorticks_off()
    axes[0].set_ylabel("Mean regret\n(0: best setting, 1: median setting)")
    axes[0].legend(fontsize="small")
    return figure


def draw_displays():
    """Search without past searches of one's own, so that everybody draws the same pictures."""
    archive = Archive(FOLDER / "none", readonly=True, starter=True)
    search = TransferSearchCV(
        make_pipeline(StandardScaler(), SVC()),
        {"svc__C": loguniform(1e-3, 1e3), "svc__gamma": loguniform(1e-5, 1e1)},
        n_iter=15,
        archive=archive,
        random_state=0,
    )
    search.fit(*load_breast_cancer(return_X_y=True))
    importance = ImportanceDisplay.from_archive(
        archive, HistGradientBoostingClassifier(), max_tasks=30
    )
    return {
        "history": SearchHistoryDisplay.from_estimator(search).figure_,
        "surface": SurfaceDisplay.from_estimator(search).figure_,
        "importance": importance.figure_,
    }


if __name__ == "__main__":
    for name, figure in {"speedup": draw_speed_up(), **draw_displays()}.items():
        figure.savefig(FOLDER / f"{name}.png", dpi=90)
