"""`continue_training`: train the pretrained models further, with the searches of an archive.

Notation of `pretrained._training`. The encoder stays as it is: embeddings remain comparable.
Heads start from the shipped weights, and a penalty keeps them near: a few searches change little.
An estimator that has no head gets one, whose parameters and ranges are those that were searched.
The result is kept in the archive, where searches find it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sktransfer.archive import Archive
from sktransfer.dataset import DatasetProfile
from sktransfer.optimizer import metric_of_head
from sktransfer.pretrained import ConfigurationEncoder, PretrainedModel, Units, load_model
from sktransfer.pretrained._assembly import extend_arrays
from sktransfer.pretrained._configurations import Parameter
from sktransfer.pretrained._model import KINDS, write_model
from sktransfer.pretrained._training import TrainingOptions, TrainingSurface, train_model
from sktransfer.space import is_scaled
from sktransfer.task import Task
from sktransfer.utils._progress_line import progress_line, track
from sktransfer.utils._scores import clip_low_outliers, standardize

FOLDER = "pretrained"
"""The folder of an archive that holds models trained further."""

MIN_TRIALS = 5  # of a search, with fewer of which it teaches nothing
MIN_TASKS = 3  # of an estimator without a head
LOG_RATIO = 50.0  # of the largest to the smallest value, from which on an axis is logarithmic
TRAINING: dict[str, Any] = {  # how the shipped weights are trained further
    "learning_rate": 3e-3,
    "weight_decay": 0.0,
    "anchor": 0.01,
    "keeps_encoder": True,
    "n_configurations": 30,
}
MIN_EPOCHS, MIN_STEPS = 40, 400


@dataclass(frozen=True)
class TrainingReport:
    """What a model was trained on.

    Parameters
    ----------
    kind : {"classification", "regression"}
    n_tasks : dict of str to int
        Class of an estimator -> number of its searches.
    path : Path
        The file of the model.
    """

    kind: str
    n_tasks: dict[str, int]
    path: Path


@dataclass(frozen=True)
class _Search:
    """A past search, as training needs it."""

    owner: str
    profile: DatasetProfile
    is_scaled: bool
    configurations: list[dict[str, Any]]
    scores: np.ndarray
    metric: str


def model_folders(archive: Archive | None) -> tuple[Path, ...]:
    """Folders of models that replace the shipped ones in searches with this archive."""
    if archive is None:
        return ()
    folder = Path(archive.model_cache.directory).parent / FOLDER
    return (folder,) if folder.is_dir() else ()


def continue_training(archive: Archive, estimator: str | None = None) -> list[TrainingReport]:
    """Train the pretrained models further with the searches of an archive.

    Parameters
    ----------
    archive : Archive
    estimator : str, optional
        Use the searches of this class only, by default those of all classes.

    Returns
    -------
    list of TrainingReport
        One for each kind of task that the archive has enough searches of.
    """
    records = track(archive, "Reading the archive")
    searches = [each for each in map(_read_search, records) if each is not None]
    if estimator is not None:
        searches = [each for each in searches if each.owner == estimator]
    folder, made = Path(archive.model_cache.directory).parent / FOLDER, []
    for kind in KINDS:
        own = [each for each in searches if each.profile.kind == kind]
        shipped = load_model(kind)
        if shipped is None or not own:
            continue
        encoders = _find_encoders(shipped, own)
        own = [each for each in own if each.owner in encoders]
        if not own:
            continue
        arrays = _train(shipped, encoders, own)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{kind}.npz"
        write_model(path, arrays)
        names = sorted({each.owner for each in own})
        counts = {name: sum(each.owner == name for each in own) for name in names}
        made.append(TrainingReport(kind, counts, path))
    return made


def _read_search(task: Task) -> _Search | None:
    """What a record teaches; None if it is too little."""
    predictors = task.space.get("predictors", ())
    if len(predictors) != 1 or task.profile is None:
        return None
    owner, profile = predictors[0], DatasetProfile.from_dict(task.profile)
    scores = np.array([trial.score for trial in task.trials], dtype=float)
    if not profile.response_curves or np.isfinite(scores).sum() < MIN_TRIALS:
        return None
    names = {
        name: canonical.partition(".")[2]
        for name, canonical in task.space["canonical"].items()
        if canonical.partition(".")[0] == owner and "@" not in canonical
    }
    fixed = {
        name.partition(".")[2]: value
        for name, value in task.space.get("fixed", {}).items()
        if name.partition(".")[0] == owner
    }
    configurations = [
        fixed | {names[name]: value for name, value in trial.params.items() if name in names}
        for trial in task.trials
    ]
    scaled = is_scaled(task.space) is not False
    return _Search(owner, profile, scaled, configurations, scores, task.metrics[0])


def _find_encoders(
    shipped: PretrainedModel, searches: Sequence[_Search]
) -> dict[str, ConfigurationEncoder]:
    """Encoders of the heads that exist, and of new ones for estimators with enough searches."""
    found = {}
    for owner in sorted({each.owner for each in searches}):
        own = [each for each in searches if each.owner == owner]
        if owner in shipped.owners:
            found[owner] = shipped.encoder_of(owner)
        elif len(own) >= MIN_TASKS:
            found[owner] = ConfigurationEncoder(owner, _find_parameters(own))
    return found


def _find_parameters(searches: Sequence[_Search]) -> list[Parameter]:
    """The parameters that vary in some searches of an estimator, with the values they had."""
    values: dict[str, list[Any]] = {}
    for search in searches:
        for configuration in search.configurations:
            for name, value in configuration.items():
                values.setdefault(name, []).append(value)
    found = []
    for name, seen in sorted(values.items()):
        distinct = list({repr(value): value for value in seen}.values())
        numbers = [float(v) for v in distinct if isinstance(v, (int, float)) and v is not True]
        if len(distinct) < 2:
            continue
        if len(numbers) == len(distinct) and min(numbers) < max(numbers):
            low, high = min(numbers), max(numbers)
            is_log = low > 0 and high / low >= LOG_RATIO
            found.append(Parameter(name, (), low, high, is_log, default=distinct[0]))
        else:
            texts = tuple(v for v in distinct if isinstance(v, (str, bool)) or v is None)
            if len(texts) > 1:
                found.append(Parameter(name, texts, default=texts[0]))
    return found


def _train(
    shipped: PretrainedModel,
    encoders: Mapping[str, ConfigurationEncoder],
    searches: Sequence[_Search],
) -> dict[str, np.ndarray]:
    """Arrays of the model, trained further."""
    numbers = np.array([shipped.read_numbers(each.profile) for each in searches])
    features = shipped.standardize(numbers)
    M = len(shipped.metrics)
    surfaces = [
        _make_surface(encoders[owner], shipped.kind, M, searches) for owner in sorted(encoders)
    ]
    layers = ("n_embedding", "encoder_layers", "head_layers")
    sizes = {name: shipped.provenance["options"][name] for name in layers}
    members, starts = [], shipped.members()
    n_steps = -(-len(searches) // TrainingOptions.batch_size)
    n_epochs = max(MIN_EPOCHS, -(-MIN_STEPS // n_steps))
    with progress_line(len(starts) * n_epochs, f"Training for {shipped.kind}") as advance:
        for number, start in enumerate(starts):
            options = TrainingOptions(**sizes, **TRAINING, n_epochs=n_epochs, seed=number)
            members.append(
                train_model(features, surfaces, options, start, lambda epoch, loss: advance())
            )
    counts = {owner: sum(each.owner == owner for each in searches) for owner in encoders}
    return extend_arrays(shipped, encoders, members, {"continued_with": counts})


def _make_surface(
    encoder: ConfigurationEncoder, kind: str, M: int, searches: Sequence[_Search]
) -> TrainingSurface:
    """The searches of one estimator; those with fewer trials are padded by NaN."""
    rows = [i for i, each in enumerate(searches) if each.owner == encoder.owner]
    c = max(len(searches[i].scores) for i in rows)
    codes = np.zeros((len(rows), c, encoder.width + 1))
    z = np.full((len(rows), c, M), np.nan)
    levels = np.full((len(rows), 2 * M), np.nan)
    for place, row in enumerate(rows):
        search = searches[row]
        n, units = len(search.scores), Units.from_profile(search.profile, search.is_scaled)
        codes[place, :n, :-1] = encoder.encode(search.configurations, units)
        codes[place, :, -1] = float(search.is_scaled)
        metric = metric_of_head(kind, (search.metric,))
        scores, shift, scale = standardize(clip_low_outliers(search.scores))
        z[place, :n, metric.number] = scores
        if metric.has_unit:
            levels[place, [metric.number, M + metric.number]] = shift, np.log(max(scale, 1e-6))
    weights = np.isfinite(z).any(axis=1).astype(float)
    return TrainingSurface(encoder.owner, np.array(rows), codes, z, weights, levels)


def format_report(reports: Sequence[TrainingReport]) -> list[str]:
    """Lines about what was trained."""
    if not reports:
        return [
            "Nothing to learn from: training needs searches with a profile of their data and at "
            f"least {MIN_TRIALS} successful trials, {MIN_TASKS} of them for an estimator without a "
            "pretrained model."
        ]
    return [
        f"{report.path}: "
        + ", ".join(f"{name} from {n} searches" for name, n in report.n_tasks.items())
        for report in reports
    ]


def report_to_json(reports: Sequence[TrainingReport]) -> Any:
    """The same as plain data."""
    return json.loads(json.dumps([{**vars(each), "path": str(each.path)} for each in reports]))
