"""`Space`: what it accepts, how it encodes, and which errors it raises."""

from functools import partial, wraps

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse, stats
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from sktransfer import Space
from sktransfer.space._axes import (
    UNKNOWN_CATEGORY,
    Continuous,
    Integers,
    Ordered,
    _needs_truncation,
    is_number,
)
from sktransfer.utils._values import identity, params_identity

# -- random spaces ---------------------------------------------------------------------------------

numbers = st.one_of(
    st.integers(-1000, 1000),
    st.floats(-1e6, 1e6, allow_nan=False).map(lambda x: float(f"{x:.6g}")),
    st.integers(0, 100).map(np.int64),
    st.floats(0.001, 100).map(np.float64),
)
anything = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(["rbf", "linear", "sqrt", "auto"]),
    st.tuples(st.integers(1, 50), st.integers(1, 50)),
    st.just(SVC()),
    st.just(LogisticRegression(C=3.0)),
    st.integers(1, 9),
    st.just(np.bool_(True)),
    st.just(np.str_("numpy string")),
)


@st.composite
def distributions(draw):
    low = draw(st.floats(1e-6, 10).map(lambda x: float(f"{x:.3g}")))
    factor = draw(st.sampled_from([2.0, 10.0, 1e3, 1e6]))
    integer = draw(st.integers(0, 20))
    return draw(
        st.sampled_from(
            [
                stats.loguniform(low, low * factor),
                stats.uniform(low - 5, factor),
                stats.randint(integer, integer + int(min(factor, 1000))),
                stats.norm(low, factor),
                stats.expon(scale=low),
                stats.gamma(2.0, scale=low),
                stats.beta(2, 3),
                stats.poisson(low + 1),
                stats.geom(0.3),
                stats.truncnorm(-2, 2, loc=low, scale=1),
                stats.lognorm(1.0, scale=low),
            ]
        )
    )


entries = st.one_of(
    st.lists(numbers, min_size=1, max_size=6),
    st.lists(anything, min_size=1, max_size=5),
    st.lists(numbers, min_size=1, max_size=6).map(lambda values: np.array(values, dtype=float)),
    st.just(range(1, 6)),
    distributions(),
)
names = st.sampled_from(["a", "b", "c", "d", "step__e", "step__deep__f"])
branches = st.dictionaries(names, entries, min_size=1, max_size=5)
spaces = st.one_of(branches, st.lists(branches, min_size=1, max_size=3))


def is_plain(value):
    return not isinstance(value, np.generic)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(spec=spaces, seed=st.integers(0, 2**31))
def test_random_space_round_trips(spec, seed):
    space = Space.parse(spec)
    sampled = space.sample(20, seed)
    assert sampled == space.sample(20, seed)
    codes = space.encode(sampled)
    assert codes.shape == (20, space.n_columns)
    assert (codes >= 0).all()
    assert (codes <= 1).all()
    back = space.decode(codes)
    for params, other in zip(sampled, back, strict=True):
        assert params_identity(params) == params_identity(other)
        assert all(is_plain(value) for value in other.values())
        assert params.keys() in [branch.keys() for branch in space.branches]
    assert space.decode(space.encode(sampled[0])).keys() == sampled[0].keys()
    np.testing.assert_allclose(space.snap(codes), codes, atol=1e-9)
    for params in sampled:
        assert any(belongs(params, branch) for branch in space.branches)
    if space.size is not None and space.size <= 500:
        grid = space.grid()
        assert len(grid) == space.size
        assert {params_identity(p) for p in sampled} <= {params_identity(p) for p in grid}


def belongs(params, branch):
    """Whether all values of the configuration are values of the branch."""
    if params.keys() != branch.keys():
        return False
    for name, entry in branch.items():
        if isinstance(entry, list):
            if identity(params[name]) not in {identity(value) for value in entry}:
                return False
        else:
            low, high = entry.support()
            if not is_number(params[name]) or not low <= params[name] <= high:
                return False
            if hasattr(entry, "pmf") and not isinstance(params[name], int):
                return False
    return True


@settings(max_examples=100, deadline=None)
@given(
    spec=st.dictionaries(
        names, st.lists(anything | numbers, min_size=1, max_size=4), min_size=1, max_size=3
    )
)
def test_grid_has_the_order_of_parameter_grid(spec):
    ours, theirs = Space.parse(spec).grid(), list(ParameterGrid(spec))
    assert [list(p) for p in ours] == [list(p) for p in theirs]
    assert [params_identity(p) for p in ours] == [params_identity(p) for p in theirs]


# -- scales ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([0.001, 0.01, 0.1, 1], "log"),
        ([1, 2, 4, 8, 16], "log"),
        ([1, 3, 10, 30, 100], "log"),
        ([1, 2, 3, 4], "linear"),
        ([50, 100, 150], "linear"),
        ([0, 0.5, 1], "linear"),
        ([0, 0.001, 0.01, 0.1, 1], "rank"),
        ([10, 1000], "log"),
        ([1, 2], "linear"),
    ],
)
def test_list_of_numbers_gets_the_scale_that_spaces_it_evenly(values, scale):
    axis = Ordered(values)
    assert axis.scale == scale
    assert axis.encode(values).tolist() == sorted(axis.encode(values))
    assert axis.decode(axis.encode(values)) == values


@pytest.mark.parametrize(
    ("distribution", "scale"),
    [
        (stats.loguniform(1e-3, 1e3), "log"),
        (stats.uniform(2, 3), "linear"),
        (stats.norm(), "quantile"),
        (stats.expon(), "quantile"),
        (stats.beta(1, 1), "linear"),
    ],
)
def test_distribution_determines_the_scale(distribution, scale):
    axis = Continuous(distribution)
    assert axis.scale == scale
    u = np.linspace(0.01, 0.99, 7)
    np.testing.assert_allclose(distribution.cdf(axis.decode(u)), u, atol=1e-5)


def test_uniform_integers_have_equal_shares_of_the_axis():
    axis = Integers(stats.randint(1, 5))
    values = axis.decode(np.linspace(0, 1, 4001))
    counts = np.bincount(values)[1:]
    assert (np.abs(counts - 1000) <= 2).all()


def test_discrete_distribution_with_gaps_has_only_its_values():
    space = Space.parse({"n": stats.rv_discrete(values=([1, 5, 10], [0.2, 0.3, 0.5]))()})
    assert [p["n"] for p in space.grid()] == [1, 5, 10]
    assert {p["n"] for p in space.sample(200, 0)} == {1, 5, 10}


def test_huge_range_has_infinite_size():
    space = Space.parse({"seed": stats.randint(0, 2**62)})
    assert space.size is None
    assert len({p["seed"] for p in space.sample(10, 0)}) == 10


def test_histograms_of_two_branches_do_not_share_an_axis():
    one, two = (stats.rv_histogram(np.histogram([low, low + 1], bins=2)) for low in (0, 100))
    for params in Space.parse([{"a": ["x"], "h": one}, {"a": ["y"], "h": two}]).sample(50, 0):
        assert (params["h"] >= 100) == (params["a"] == "y")


def test_sample_follows_the_distributions():
    space = Space.parse(
        {"C": stats.loguniform(1e-3, 1e3), "k": stats.randint(0, 4), "s": ["a", "b"]}
    )
    drawn = space.sample(4000, 0)
    logs = np.log10([p["C"] for p in drawn])
    assert abs(np.mean(logs)) < 0.1
    assert stats.kstest((logs + 3) / 6, "uniform").pvalue > 1e-3
    assert set(p["k"] for p in drawn) == {0, 1, 2, 3}
    assert abs(np.mean([p["s"] == "a" for p in drawn]) - 0.5) < 0.05


def test_value_out_of_bounds_is_encoded_by_its_distance():
    space = Space.parse(
        {"C": stats.loguniform(1e-2, 1e2), "n": [10, 20, 30], "k": stats.randint(0, 10)}
    )
    column = {name: i for i, name in enumerate(space.column_names())}
    assert space.encode_column(column["C"], [1e4])[0] == pytest.approx(1.5)
    assert space.encode_column(column["C"], [1e-4])[0] == pytest.approx(-0.5)
    assert space.encode_column(column["n"], [50, 15]).tolist() == pytest.approx([2.0, 0.25])
    assert space.encode_column(column["k"], [19])[0] == pytest.approx(1.95)
    assert np.isnan(space.encode_column(column["C"], ["scale"])[0])  # not a number
    assert Space.parse({"k": ["rbf", "poly"]}).encode_column(0, ["linear"])[0] == UNKNOWN_CATEGORY


# -- branches --------------------------------------------------------------------------------------


def test_branches_share_axes_of_one_kind():
    spec = [
        {"kernel": ["rbf"], "C": [0.1, 1, 10], "gamma": stats.loguniform(1e-3, 1)},
        {"kernel": ["linear"], "C": [1, 100], "gamma": ["scale"]},
    ]
    space = Space.parse(spec)
    assert space.names.count("C") == 1
    assert space.names.count("gamma") == 2  # a scale and categories do not mix
    one = space.encode({"kernel": "rbf", "C": 1, "gamma": 0.1})
    two = space.encode({"kernel": "linear", "C": 1, "gamma": "scale"})
    c = space.column_names().index("C")
    assert one[c] == two[c]
    for params in space.sample(200, 0):
        assert params["C"] in (spec[0]["C"] if params["kernel"] == "rbf" else spec[1]["C"])


def test_sample_draws_branches_equally_often():
    space = Space.parse([{"a": [1]}, {"b": list(range(100))}])
    share = np.mean(["a" in params for params in space.sample(2000, 0)])
    assert abs(share - 0.5) < 0.05


def test_decode_stays_in_the_branch():
    space = Space.parse([{"a": [1, 2]}, {"a": [5, 6], "b": ["x", "y"]}])
    rng = np.random.default_rng(0)
    wild = rng.normal(0.5, 1, (300, space.n_columns))
    wild[:, 0] = np.where(wild[:, 0] < 0.5, 0.25, 0.75)
    for row, params in zip(wild, space.decode(wild), strict=True):
        assert params["a"] in ([1, 2] if row[0] == 0.25 else [5, 6])
        assert ("b" in params) == (row[0] == 0.75)


# -- values ----------------------------------------------------------------------------------------


def test_grid_values_are_plain_python():
    spec = {
        "C": np.logspace(-2, 2, 5),
        "gamma": [np.float32(0.5), "scale"],
        "degree": np.array([2, 3]),
        "shrinking": [np.bool_(True), False],
    }
    for params in Space.parse(spec, SVC()).grid():
        assert type(params["C"]) is float
        assert type(params["degree"]) is int
        assert type(params["shrinking"]) is bool
        assert type(params["gamma"]) in (float, str)


def test_tuples_none_and_estimators_round_trip():
    spec = {"a": [(1, 2), None, (3,)], "b": [SVC(C=1.0), SVC(C=2.0), RandomForestClassifier()]}
    space = Space.parse(spec)
    assert space.size == 9
    for params in space.grid():
        back = space.decode(space.encode(params))
        assert back["a"] == params["a"]
        assert back["b"] is params["b"]


def test_values_without_names_are_distinguished():
    one, two = (lambda x: x), (lambda x: 2 * x)
    values = [one, two, KFold(2), KFold(5), partial(max, 1), partial(max, 2), np.log1p, b"x", b"y"]
    space = Space.parse({"f": values})
    assert space.size == len(values)
    assert len({float(space.encode({"f": value})[0]) for value in values}) == len(values)
    assert all(space.decode(space.encode({"f": value}))["f"] is value for value in values)
    assert len({params_identity({"f": value}) for value in values}) == len(values)


class Kernel:
    """Objects with equal reprs and different content."""

    def __init__(self, gamma):
        self.gamma = gamma

    def __repr__(self):
        return "Kernel()"

    def between(self, one, other):
        return self.gamma * one @ other


def frozen(labels):
    return FrozenEstimator(LogisticRegression().fit([[0.0], [1.0]], labels))


def test_values_with_equal_reprs_are_distinguished_by_content():
    one, two = Kernel(0.1), Kernel(0.2)
    kinds = [
        type("Kind", (), {"__module__": "elsewhere", "__qualname__": f"{name}.Kind"})
        for name in "AB"
    ]
    wrapped = [wraps(max)(lambda x: x), wraps(max)(lambda x: -x)]
    values = [one, two, one.between, two.between, frozen([0, 1]), frozen([1, 0]), *wrapped]
    values += [
        sparse.csr_array(np.eye(500)),
        2 * sparse.csr_array(np.eye(500)),
        *(kind() for kind in kinds),
    ]
    space = Space.parse({"f": values})
    assert space.size == len(values)
    assert all(space.decode(space.encode({"f": value}))["f"] is value for value in values)
    assert params_identity({"f": Kernel(0.1)}) == params_identity({"f": one})


def test_value_with_failing_repr_is_accepted():
    class Broken:
        def __repr__(self):
            raise RuntimeError

    assert Space.parse({"f": [Broken(), None]}).size == 2


def test_integer_and_equal_float_are_two_values():
    """max_features=1.0 means all of them, 1 means one."""
    space = Space.parse({"max_features": [1, 0.5, 1.0]})
    decoded = [space.decode(space.encode(p))["max_features"] for p in space.grid()]
    assert [(type(v), v) for v in decoded] == [(int, 1), (float, 0.5), (float, 1.0)]


def test_one_and_true_and_text_are_different_values():
    space = Space.parse({"a": [1, True, "1"]})
    assert [space.decode(space.encode({"a": v}))["a"] for v in (1, True, "1")] == [1, True, "1"]
    assert len({float(space.encode({"a": v})[0]) for v in (1, True, "1")}) == 3


# -- what RandomizedSearchCV takes -----------------------------------------------------------------


class Powers:
    """A distribution that only has an `rvs` method."""

    def __init__(self, of):
        self.of = of

    def rvs(self, size=None, random_state=None):
        return self.of ** int(random_state.randint(6))


def test_object_with_only_rvs_becomes_a_list_of_its_values():
    space = Space.parse({"n": Powers(2)})
    assert space.size == 6
    assert {params["n"] for params in space.sample(200, 0)} == {1, 2, 4, 8, 16, 32}


def test_series_and_index_are_lists():
    space = Space.parse(
        {"a": pd.Series([1, 2]), "b": pd.Index(["x", "y"]), "c": stats.randint(3, 4)}
    )
    assert space.size == 4
    assert space.grid()[0] == {"a": 1, "b": "x", "c": 3}


@pytest.mark.parametrize("spec", [{}, [{}]])
def test_empty_dict_has_one_configuration(spec):
    space = Space.parse(spec)
    assert space.size == 1
    assert space.grid() == [{}]
    assert space.sample(2, 0) == [{}, {}]


@pytest.mark.parametrize(
    "distribution", [stats.zipf(2.0), stats.zipf(1.5), stats.logser(0.9), stats.yulesimon(1.2)]
)
def test_heavy_tailed_distribution_is_sampled_and_encoded(distribution):
    """scipy would search their quantiles step by step, and use up all memory."""
    space = Space.parse({"n": distribution})
    drawn = [params["n"] for params in space.sample(2000, 0)]
    for n in (1, 2, 3, 10):
        assert np.mean(np.array(drawn) <= n) == pytest.approx(distribution.cdf(n), abs=0.04)
    assert all(space.decode(space.encode({"n": n}))["n"] == n for n in drawn[:100])
    assert np.isfinite(space.encode({"n": 10**9})).all()


@pytest.mark.parametrize(
    "distribution",
    [
        stats.randint(1, 5, loc=0.5),
        stats.poisson(3, loc=0.25),
        stats.binom(5, 0.3, loc=-2),
        stats.zipf(2.0, loc=0.5),
    ],
)
def test_discrete_distribution_may_have_an_offset(distribution):
    space = Space.parse({"a": distribution})
    drawn = [params["a"] for params in space.sample(300, 0)]
    assert all(distribution.pmf(a) > 0 for a in drawn)
    assert all(space.decode(space.encode({"a": a}))["a"] == a for a in drawn)


def test_grid_keeps_numpy_dates():
    values = np.array(["2020-01-01", "2021-01-01"], dtype="M8[ns]")
    assert [params["since"] for params in Space.parse({"since": values}).grid()] == list(values)


def test_parameters_of_replaced_steps_can_be_searched():
    pipeline = Pipeline([("model", SVC())])
    steps = [[("new", SVC())], [("scale", StandardScaler()), ("new", LogisticRegression())]]
    assert Space.parse({"steps": steps, "new__C": [0.1, 1]}, pipeline).size == 4
    with pytest.raises(ValueError, match="new__D"):
        Space.parse({"steps": steps, "new__D": [0.1, 1]}, pipeline)


def test_parse_does_not_modify_nested_pipelines():
    pipeline = Pipeline([("pre", Pipeline([("scale", StandardScaler())])), ("model", SVC())])
    Space.parse(
        {"pre__steps": [[("other", StandardScaler())]], "pre__other__with_mean": [True]}, pipeline
    )
    assert [name for name, _ in pipeline.named_steps["pre"].steps] == ["scale"]


def test_only_slow_distributions_with_mass_near_the_start_are_truncated():
    class Far(stats.rv_discrete):
        def _pmf(self, k):
            return stats.poisson(10**5).pmf(k)

    assert _needs_truncation(stats.zipf(2.0))
    assert not _needs_truncation(Far(name="far")())
    assert not _needs_truncation(stats.poisson(3))  # it has its own quantiles


def test_description_of_a_long_list_is_thinned_out():
    [described] = Space.parse({"seed": range(10**5)}).describe()["branches"][0].values()
    assert 1000 < len(described["values"]) <= 10**4


# -- invalid input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "error", "parts"),
    [
        ([], ValueError, ["space is empty"]),
        ({"C": []}, ValueError, ["'C'", "empty"]),
        ({"C": 1.0}, TypeError, ["'C'", "1.0", "[1.0]", "loguniform"]),
        ({"C": "rbf"}, TypeError, ["'C'", "'rbf'", "['rbf']"]),
        ({"C": np.ones((2, 2))}, ValueError, ["'C'", "(2, 2)"]),
        ({3: [1]}, TypeError, ["3", "strings"]),
        ("C", TypeError, ["'C'", "dict"]),
        ([1], TypeError, ["1", "dict"]),
        ({"C": stats.uniform(0, -1)}, ValueError, ["'C'", "support"]),
        ({"C": stats.loguniform}, TypeError, ["'C'", "loguniform(1e-3, 1e3)"]),
    ],
)
def test_invalid_space_raises_with_name_and_value(spec, error, parts):
    with pytest.raises(error) as caught:
        Space.parse(spec)
    for part in parts:
        assert part in str(caught.value)


def test_encode_raises_for_unknown_parameters():
    with pytest.raises(ValueError, match="does not have the parameters"):
        Space.parse({"C": [1, 2]}).encode({"D": 1})


@pytest.mark.parametrize(
    "distribution",
    [
        stats.randint(1, 61),
        stats.binom(10, 0.3),
        stats.rv_discrete(values=([1, 5, 9], [0.2, 0.3, 0.5]))(),
    ],
)
def test_snap_agrees_with_decode_for_integers(distribution):
    axis = Integers(distribution)
    u = np.append(np.random.default_rng(0).random(500), [0.0, 1.0])
    np.testing.assert_array_equal(axis.snap(u), axis.encode(axis.decode(u)))


@pytest.mark.parametrize("value", [10**25, 10**400, -(10**400)])
def test_integers_beyond_64_bits_are_accepted(value):
    assert is_number(value) == (abs(value) < 10**300)
    space = Space.parse({"alpha": [1, value]})
    assert {params["alpha"] for params in space.grid()} == {1, value}
    space.decode(space.encode(space.grid()))


@pytest.mark.parametrize("axis", [Continuous(stats.norm(1, 0.1)), Integers(stats.poisson(3))])
def test_text_on_an_unbounded_axis_is_nan(axis):
    with np.errstate(all="raise"):
        code, unknown = axis.encode([2, "scale"])
    assert np.isfinite(code) and np.isnan(unknown)


def test_range_of_billions_is_not_listed():
    space = Space.parse({"random_state": range(2**31 - 1)})
    assert space.size is None
    assert 0 <= space.sample(1, 0)[0]["random_state"] < 2**31 - 1
