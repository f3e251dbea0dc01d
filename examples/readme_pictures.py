"""Draw the pictures of the README: python examples/readme_pictures.py"""

from pathlib import Path

from scipy.stats import loguniform
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from sktransfer import Archive, TransferSearchCV
from sktransfer.inspection import ImportanceDisplay, SearchHistoryDisplay, SurfaceDisplay

FOLDER = Path(__file__).parents[1] / "docs" / "images"


def main():
    """Search with the starter archive only, so that everybody draws the same pictures."""
    archive = Archive(FOLDER / "none", readonly=True, starter=True)
    search = TransferSearchCV(
        make_pipeline(StandardScaler(), SVC()),
        {"svc__C": loguniform(1e-3, 1e3), "svc__gamma": loguniform(1e-5, 1e1)},
        n_iter=15,
        archive=archive,
        random_state=0,
    )
    search.fit(*load_breast_cancer(return_X_y=True))
    pictures = {
        "history": SearchHistoryDisplay.from_estimator(search),
        "surface": SurfaceDisplay.from_estimator(search),
        "importance": ImportanceDisplay.from_archive(
            archive, HistGradientBoostingClassifier(), max_tasks=30
        ),
    }
    for name, display in pictures.items():
        display.figure_.savefig(FOLDER / f"{name}.png", dpi=90)


if __name__ == "__main__":
    main()
