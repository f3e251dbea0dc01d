"""Selection: same estimator, a common parameter, a success, and no shared rows."""

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from sktransfer.archive import Archive, ArchiveKey, Selection
from sktransfer.dataset import DatasetProfile, profile
from sktransfer.space import Space

SVC_SPACE = Space.parse({"C": loguniform(1e-3, 1e3), "gamma": [0.1, 1.0]}, SVC())


def ids(selection):
    return [task.id for task in selection.used]


def reasons(selection):
    return {task.id: reason for task, reason in selection.excluded}


def data(seed, n=400):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 5)), rng.integers(0, 2, size=n)


@pytest.fixture
def fill(archive, make_task):
    """Append one task per keyword: its id, with the options of `make_task`."""

    def fill(**tasks):
        for id, options in tasks.items():
            archive.append(make_task(id=id, **options))
        return archive

    return fill


@pytest.fixture
def estimators(fill):
    return fill(
        bare={},
        bare_other={"space": {"alpha": [1.0]}, "trials": [({"alpha": 1.0}, 0.5)]},
        forest={
            "space": {"max_depth": [1, 2]},
            "trials": [({"max_depth": 1}, 0.5)],
            "estimator": RandomForestClassifier(),
        },
        logistic={"estimator": LogisticRegression()},
        other_parameter={
            "space": {"degree": [2]},
            "trials": [({"degree": 2}, 0.5)],
            "estimator": SVC(),
        },
        pipeline={
            "space": {"svc__C": [1.0]},
            "trials": [({"svc__C": 1.0}, 0.5)],
            "estimator": make_pipeline(StandardScaler(), SVC()),
        },
        svc={"estimator": SVC(), "metrics": ["neg_log_loss"]},
    )


@pytest.mark.parametrize("space", [SVC_SPACE, SVC_SPACE.describe()], ids=["space", "description"])
def test_select_requires_same_estimator_and_common_parameter(estimators, space):
    selection = estimators.select(space)
    assert isinstance(selection, Selection)
    assert ids(selection) == ["bare", "pipeline", "svc"]
    assert reasons(selection) == {
        "bare_other": "no parameter in common",
        "forest": "another estimator: RandomForestClassifier",
        "logistic": "another estimator: LogisticRegression",
        "other_parameter": "no parameter in common",
    }


def test_select_without_estimator_compares_declared_names(estimators):
    selection = estimators.select(Space.parse({"C": [1.0, 2.0]}))
    assert ids(selection) == ["bare", "logistic", "svc"]
    assert set(reasons(selection).values()) == {"no parameter in common"}


def test_select_ignores_declared_names_of_known_estimators(fill):
    """Two steps may have the same name and different parameters."""
    scaled = make_pipeline(StandardScaler(), SVC())
    archive = fill(
        past={"space": {"svc__C": [1.0]}, "trials": [({"svc__C": 1.0}, 0.5)], "estimator": scaled},
    )
    target = Space.parse({"svc__degree": [2, 3]}, scaled).describe()
    target["canonical"] = {"svc__C": "SVC.degree"}
    assert reasons(archive.select(target)) == {"past": "no parameter in common"}


def test_select_requires_one_common_predictor(fill):
    pipeline = make_pipeline(StandardScaler(), SVC())
    several = {"svc": [SVC(), LogisticRegression()], "svc__C": [1.0, 2.0]}
    trials = [({"svc": SVC(), "svc__C": 1.0}, 0.5)]
    archive = fill(past={"space": several, "trials": trials, "estimator": pipeline})
    assert archive["past"].space["predictors"] == ["LogisticRegression", "SVC"]
    assert ids(archive.select(Space.parse(several, pipeline))) == ["past"]
    forest = Space.parse({"max_depth": [1]}, RandomForestClassifier())
    assert reasons(archive.select(forest)) == {"past": "another estimator: LogisticRegression, SVC"}


def test_select_without_space_uses_any_estimator(estimators):
    assert ids(estimators.select()) == [task.id for task in estimators]


def test_select_excludes_tasks_without_success(fill):
    archive = fill(
        failed={"trials": [({"C": 1.0}, float("nan"))]}, mixed={}, nothing={"trials": []}
    )
    for space in (None, Space.parse({"C": [1.0, 2.0]})):
        selection = archive.select(space)
        assert ids(selection) == ["mixed"]
        assert reasons(selection) == {
            "failed": "no successful trial",
            "nothing": "no successful trial",
        }


def test_select_refuses_dict_that_is_no_description(archive):
    with pytest.raises(ValueError, match=r"Space\.parse"):
        archive.select({"C": [1.0, 2.0]})


# -- shared rows ---------------------------------------------------------------------------------


@pytest.fixture
def rows(fill):
    X, y = data(0)
    return fill(
        other={"profile": profile(*data(1))},
        quarter={"profile": profile(X[:100], y[:100])},
        same={"profile": profile(X, y)},
        three_quarters={"profile": profile(np.vstack([X[:300], data(2, 100)[0]]), y)},
        unknown={"profile": None},
    )


@pytest.mark.parametrize("plain", [True, False])
def test_select_excludes_tasks_with_shared_rows(rows, plain):
    target = profile(*data(0))
    selection = rows.select(profile=target.to_dict() if plain else target)
    excluded = {
        "same": "shares about 100 % of its rows with these data",
        "three_quarters": "shares about 75 % of its rows with these data",
    }
    if plain:  # without the hashes of all rows, it is not known that a quarter is contained
        excluded["quarter"] = "shares about 100 % of its rows with these data"
    assert reasons(selection) == excluded
    contained = {} if plain else {"quarter": "contained"}
    assert selection.overlap == {"other": "none", "unknown": "unknown", **contained}
    assert selection.count_excluded() == {"shares rows with these data": len(excluded)}


def test_select_excludes_other_folds(rows):
    X, y = data(0)
    fold = np.arange(400) % 5 != 0
    selection = rows.select(profile=profile(X[fold], y[fold]))
    assert ids(selection) == ["other", "unknown"]


def test_select_excludes_by_any_of_several_profiles(rows):
    selection = rows.select(profile=[profile(*data(3)), profile(*data(1)).to_dict()])
    assert list(reasons(selection)) == ["other"]
    assert ids(rows.select(profile=(profile(*data(3)),))) == [task.id for task in rows]
    assert ids(rows.select(profile=[])) == [task.id for task in rows]


def test_select_excludes_at_threshold(rows):
    target = profile(*data(0))
    assert list(reasons(rows.select(profile=target, overlap=0.8))) == ["same"]
    X, y = data(0)
    few = profile(np.vstack([X[:4], data(4, 396)[0]]), y)
    assert "same" in reasons(rows.select(profile=few))  # 4 of 400 are 1 %, the threshold
    assert "same" not in reasons(rows.select(profile=few, overlap=0.011))


def test_select_can_allow_overlap(rows):
    selection = rows.select(profile=profile(*data(0)), overlap="allow")
    assert ids(selection) == [task.id for task in rows]
    assert selection.excluded == ()


def test_select_without_profile_uses_all(rows):
    assert ids(rows.select()) == [task.id for task in rows]


def test_select_uses_overlap_of_archive(rows):
    X, y = data(0)
    one_row = profile(np.vstack([X[:1], data(4, 399)[0]]), y)
    for overlap, is_used in [
        ("exclude", True),
        (0, False),
        (1.0, True),
        ("allow", True),
        (0.0025, False),
    ]:
        opened = Archive(rows.path, overlap=overlap)
        assert ("same" in ids(opened.select(profile=one_row))) is is_used
    assert ids(Archive(rows.path, overlap="allow").select(profile=profile(X, y))) == [
        t.id for t in rows
    ]
    assert list(reasons(Archive(rows.path, overlap=1).select(profile=profile(X, y)))) == ["same"]
    excluded = reasons(
        Archive(rows.path, overlap="allow").select(profile=profile(X, y), overlap="exclude")
    )
    assert "same" in excluded


@pytest.mark.parametrize("overlap", ["yes", -0.1, 1.5, True, float("nan"), [1]])
def test_select_refuses_invalid_overlap(archive, overlap):
    with pytest.raises(
        ValueError, match=r"overlap must be 'exclude', 'allow' or a number in \[0, 1\]"
    ):
        archive.select(overlap=overlap)


def test_select_uses_longest_record_of_continued_search(fill, make_task):
    """Otherwise its first trials would count twice."""
    short, long = [({"C": 1.0}, 0.9)], [({"C": 1.0}, 0.9), ({"C": 10.0}, 0.8)]
    archive = fill(
        a={"trials": short},
        b={"trials": long, "resume": {"continues": ["a", "gone", 3]}},
        c={"trials": short, "resume": {"continues": ["b"]}},
        d={"trials": short, "resume": {"continues": "nonsense"}},
    )
    assert reasons(archive.select()) == {
        "a": "continued in b",
        "c": "continues b, which has more trials",
    }
    assert ids(archive.select()) == ["b", "d"]


def test_select_uses_one_of_runs_that_continue_the_same_run(fill):
    """Two processes resumed the same search at once, or it was killed twice."""
    short, long = [({"C": 1.0}, 0.9)], [({"C": 1.0}, 0.9), ({"C": 10.0}, 0.8)]
    archive = fill(
        b={"trials": long, "resume": {"continues": ["gone"]}},
        c={"trials": short, "resume": {"continues": ["gone"]}},
        d={"trials": long, "resume": {"continues": ["c", "gone"]}},
        e={"trials": long},
    )
    selection = archive.select()
    assert ids(selection) == ["d", "e"]
    assert reasons(selection) == {"b": "another run of the search d", "c": "continued in d"}
    assert selection.count_excluded() == {"another run of the search": 1, "continued": 1}


def test_foreign_record_cannot_claim_to_continue_own_search(fill):
    long = [({"C": 1.0}, 0.9), ({"C": 10.0}, 0.8)]
    archive = fill(
        own={"trials": [({"C": 1.0}, 0.9)]},
        theirs={"trials": long, "resume": {"continues": ["own"]}, "origin": "imported from x"},
    )
    assert ids(archive.select()) == ["own", "theirs"]


@pytest.mark.parametrize(("n_part", "n_whole"), [(500, 10**6), (100, 10**5), (1000, 10**6)])
def test_small_part_of_large_table_is_recognized(n_part, n_whole):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(n_whole, 1))
    whole = profile(table)
    for _ in range(8):
        part = rng.choice(n_whole, n_part, replace=False)
        assert profile(table[part]).overlap(whole) >= 0.01


INVALID_PROFILES = [
    {},
    {"kind": "x", "n_rows": 3, "fingerprint": "no"},
    {"kind": "x", "n_rows": 1, "n_distinct": "many"},
    {
        "kind": "x",
        "n_rows": 1,
        "fingerprint": [1],
        "n_distinct": 1,
        "meta_features": {"log_rows": "five"},
    },
]


@pytest.mark.parametrize("invalid", INVALID_PROFILES)
def test_append_refuses_invalid_profile(archive, make_task, invalid):
    with pytest.raises(ValueError, match=r"of the profile is (invalid|missing)"):
        archive.append(make_task(profile=invalid))
    assert not len(archive)


@pytest.mark.parametrize("invalid", [INVALID_PROFILES[n] for n in (0, 1, 3)])
def test_select_excludes_unreadable_profile(archive, make_task, invalid):
    """A task in memory may hold anything. It may have seen these rows."""
    tasks = [make_task(id="invalid", profile=invalid)]
    selection = archive.select(profile=profile(*data(0)), extra_tasks=tasks)
    assert "cannot be read" in reasons(selection)["invalid"]


class Opaque:
    """Objects that cannot be distinguished."""


def test_select_excludes_incomparable_rows(fill):
    opaque = profile([Opaque() for _ in range(20)])
    assert not len(opaque.fingerprint)
    archive = fill(known={"profile": profile(*data(1))}, opaque={"profile": opaque}, bare={})
    assert ids(archive.select(profile=profile(*data(0)))) == ["bare", "known"]
    assert "rows are unknown" in reasons(archive.select(profile=profile(*data(0))))["opaque"]
    assert ids(archive.select(profile=opaque)) == ["bare"]


def test_select_compares_enclosing_data(fill):
    """Two halves of one table share no row, but the table that encloses them."""
    X, y = data(0)
    halves = [profile(X[half], y[half], enclosing=[X]) for half in (slice(200), slice(200, 400))]
    alone = profile(X[:200], y[:200])
    archive = fill(half={"profile": halves[0]}, alone={"profile": alone})
    assert ids(archive.select(profile=profile(X[200:], y[200:]))) == ["alone"]
    assert ids(archive.select(profile=halves[1])) == []
    # the same, behind a scaler that differs between folds
    scaled = [
        profile(X[h] * f, y[h], enclosing=[X])
        for h, f in ((slice(300), 2.0), (slice(100, 400), 3.0))
    ]
    archive = fill(scaled={"profile": scaled[0]})
    assert "scaled" in reasons(archive.select(profile=scaled[1]))


def test_record_keeps_fingerprint(rows):
    X, y = data(0)
    sealed = DatasetProfile.from_dict(rows["same"].profile)
    assert not np.isin(sealed.fingerprint, profile(X, y).fingerprint).any()
    back = rows.open_key().unseal(sealed)
    np.testing.assert_array_equal(back.fingerprint, profile(X, y).fingerprint)
    with pytest.raises(ValueError, match="different keys"):
        sealed.overlap(profile(X, y))
    with pytest.raises(ValueError, match="key of another archive"):
        ArchiveKey(bytes(32)).unseal(sealed)
