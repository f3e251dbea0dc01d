"""The report page of 500 searches in headless Chromium: seconds to open, sort and filter it.

Some of the searches have hostile names. Needs Chromium and its driver (Debian: chromium,
chromium-driver) and selenium. Writes docs/results/report_page.md.

    python -m benchmarks.report_page [--report FILE]
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import textwrap
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.runner import markdown_table
from sktransfer import Archive, Task, profile
from sktransfer.inspection import archive_report

REPORT = Path(__file__).parents[1] / "docs" / "results" / "report_page.md"
HOSTILE = "<script>window.hacked = 1</script>\"'><img src=x onerror='window.hacked=1'>"
NEWLINE = "\n"
HEAD = ["seconds to", "median", "slowest"]
N_TASKS = 500
N_LOADS = 21
MAX_SECONDS = 2.0
CHROMES = ("chromium", "chromium-browser", "google-chrome")
# Without these, Chromium looks for updates.
SWITCHES = ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1200,900")
SWITCHES += ("--disable-background-networking", "--disable-component-update", "--disable-sync")
DATA = profile(np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2)

OPEN_SECONDS = "const t = performance.timing; return (t.loadEventEnd - t.navigationStart) / 1000"
SORT_SECONDS = """
const start = performance.now();
document.querySelectorAll("#tasks th button")[9].click();
document.body.offsetHeight;  // lay the page out
return (performance.now() - start) / 1000;
"""
FILTER_SECONDS = """
const start = performance.now(), query = document.getElementById("query");
query.value = "ridge 2026-03";
query.dispatchEvent(new Event("input"));
document.body.offsetHeight;
return (performance.now() - start) / 1000;
"""


def make_task(
    number: int, estimator: str = "SVC", value: str | None = None, metric: str = "accuracy"
) -> Task:
    """A task of three trials on its own data. Its best score is that of the last one."""
    rng = np.random.default_rng(number)
    data = replace(
        DATA,
        n_rows=20 + number % 40,
        fingerprint=np.sort(rng.integers(2**63, size=20).astype(np.uint64)),
        meta_features={name: float(rng.normal()) for name in DATA.meta_features},
    )
    values = [1.0, float("nan"), float(number)]
    trials = [({"C": 0.1 + i, "kernel": value or "rbf"}, score) for i, score in enumerate(values)]
    task = Task.from_trials(
        {"C": [0.1, 1.1, 2.1], "kernel": [value or "rbf"]}, trials, data, metrics=[metric]
    )
    day, month = 1 + number % 28, 1 + number // 28 % 12
    return replace(
        task,
        id=f"t{number:04}",
        created=f"2026-{month:02}-{day:02}T12:00:00+00:00",
        space=task.space | {"predictors": [estimator]},
    )


class LargeArchive(Archive):
    """500 searches, some with hostile names, that need not be written."""

    def __iter__(self) -> Iterator[Task]:
        for number in range(N_TASKS):
            odd = HOSTILE if number % 50 == 7 else None
            task = make_task(number, odd or ["SVC", "Ridge", "Lasso"][number % 3], odd)
            yield replace(task, name=odd or "")


def open_browser() -> Any:
    """Headless Chromium, driven by Selenium.

    Raises
    ------
    FileNotFoundError
        If Chromium or its driver is not installed.
    """
    from selenium import webdriver

    chrome = next(filter(None, map(shutil.which, CHROMES)), None)
    driver = shutil.which("chromedriver")
    if chrome is None or driver is None:
        raise FileNotFoundError(
            "Chromium is not installed (apt-get install chromium chromium-driver)"
        )
    options = webdriver.ChromeOptions()
    options.binary_location = chrome
    for switch in SWITCHES:
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))


def measure(page: Path) -> dict[str, Any]:
    """Open the page several times; all seconds, and what must not happen."""
    browser = open_browser()
    browser.get("about:blank")
    browser.get_log("browser")
    seconds: dict[str, list[float]] = {"open": [], "sort": [], "filter": []}
    n_requests = 0
    for _ in range(N_LOADS):
        browser.get(page.as_uri())
        seconds["open"].append(browser.execute_script(OPEN_SECONDS))
        seconds["sort"].append(browser.execute_script(SORT_SECONDS))
        seconds["filter"].append(browser.execute_script(FILTER_SECONDS))
        entries = "return performance.getEntriesByType('resource').length"
        n_requests += browser.execute_script(entries)
    found = {
        "seconds": seconds,
        "requests": n_requests,
        "console": len(browser.get_log("browser")),
        "hacked": browser.execute_script("return window.hacked === 1"),
        "version": browser.capabilities["browserVersion"],
    }
    browser.quit()
    return found


def write_report(page: str, making: float, found: dict[str, Any]) -> str:
    """The text of the page of results."""
    rows = [
        [f"{step} the page", f"{statistics.median(each):.3f}", f"{max(each):.3f}"]
        for step, each in found["seconds"].items()
    ]
    opened = found["seconds"]["open"]
    verdict = "met" if statistics.median(opened) < MAX_SECONDS else "missed"
    n_slow, table = sum(each >= MAX_SECONDS for each in opened), markdown_table(HEAD, rows)
    n_hostile = sum(number % 50 == 7 for number in range(N_TASKS))
    about = (
        f"`sktransfer report` of {N_TASKS} searches on {N_TASKS} data sets. {n_hostile} of them "
        "have this name, estimator and value, and so has the title of the page:"
    )
    setting = (
        f"Headless Chromium {found['version']}, opened {N_LOADS} times. The machine has "
        f"{os.cpu_count()} cores and was busy with other work: {os.getloadavg()[0]:.1f} processes "
        "were running on average. Opening lasts until the load event. Sorting is by score, "
        "filtering by two words, both with layout."
    )
    return f"""# The report page in a browser

{_wrap(about)}

```
{HOSTILE}
```

{_wrap(setting)}

```
python -m benchmarks.report_page
```

{NEWLINE.join(table)}

| measured | value |
| --- | --- |
| opens in less than {MAX_SECONDS:.0f} s (median) | {verdict} |
| times that it took longer | {n_slow} of {N_LOADS} |
| size of the page | {len(page) / 1e6:.2f} MB |
| CPU seconds to write it | {making:.1f} |
| requests to anything but the page | {found["requests"]} |
| lines in the console | {found["console"]} |
| scripts of hostile names that ran | {int(found["hacked"])} |
"""


def _wrap(text: str) -> str:
    return textwrap.fill(text, 100, break_long_words=False)


def main() -> None:
    """Measure and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--report", type=Path, default=REPORT)
    report = parser.parse_args().report
    start = time.process_time()
    page = archive_report(LargeArchive(), title=HOSTILE)
    making = time.process_time() - start
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        path.write_text(page, encoding="utf-8")
        found = measure(path)
    text = write_report(page, making, found)
    report.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
