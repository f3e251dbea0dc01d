"""The report page: content, and its behavior in a browser."""

import re
from dataclasses import replace

import pytest

from benchmarks.report_page import (
    HOSTILE,
    MAX_SECONDS,
    N_TASKS,
    OPEN_SECONDS,
    LargeArchive,
    make_task,
    open_browser,
)
from sktransfer import Archive, Task, _cli
from sktransfer.inspection import archive_report


@pytest.fixture
def archive(tmp_path):
    archive = Archive(tmp_path / "past")
    for number in range(6):
        archive.append(make_task(number + 10, ["SVC", "Ridge"][number % 2]))
    return archive


def test_page_is_complete_and_self_contained(archive):
    page = archive_report(archive)
    assert page.startswith("<!DOCTYPE html>") and page.endswith("</html>\n")
    assert "6 searches, 18 trials, 2 estimators, from 2026-01-11 to 2026-01-16." in page
    assert page.count('<tr id="task-') == 6
    assert page.count("<circle") == 6
    assert set(re.findall(r"https?://[^\"' ]*", page)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<(link|img|iframe|object)\b|\bsrc=|@import|url\(", page)


def test_page_says_what_worked_for_each_estimator(archive):
    page = archive_report(archive)
    assert re.search(r'<h3 id="estimator-0">Ridge <span class="soft">\(3 searches\)', page)
    assert "2.1 (3)" in page  # C of the best configuration of all three searches
    assert "rbf (3)" in page


@pytest.mark.parametrize(("n", "words"), [(0, "no searches yet"), (1, "knows one data set")])
def test_small_archive_has_a_page_without_a_map(tmp_path, n, words):
    archive = Archive(tmp_path)
    for number in range(n):
        archive.append(make_task(number))
    page = archive_report(archive)
    assert words in page and "<circle" not in page
    assert "A map needs at least two." in page


def test_names_of_searches_are_shown(archive):
    archive.append(replace(make_task(99), name="churn <2026>"))
    assert '<td class="name" data-sort="churn &lt;2026&gt;">churn &lt;2026&gt;</td>' in (
        archive_report(archive)
    )


def test_everything_of_a_record_is_escaped(tmp_path):
    archive = Archive(tmp_path)
    for number in range(2):
        archive.append(replace(make_task(number, HOSTILE, HOSTILE, HOSTILE), name=HOSTILE))
    page = archive_report(archive, title=HOSTILE)
    assert "<script>window" not in page and "<img" not in page
    assert "&lt;script&gt;window.hacked" in page


def test_failed_and_unusual_records_have_a_row(tmp_path):
    archive = Archive(tmp_path)
    failed = Task.from_trials({"C": [1, 2]}, [({"C": 1}, float("nan"))], id="a", created="unknown")
    archive.append(failed)
    archive.append(replace(make_task(3), profile=None, complete=False))
    page = archive_report(archive)
    assert page.count('<tr id="task-') == 2 and "(incomplete)" in page


def test_command_writes_the_page(archive, tmp_path, capsys):
    out = tmp_path / "page.html"
    options = ["report", "--archive", str(archive.path), "--out", str(out), "--title", "Ours"]
    assert _cli.main(options) == 0
    assert capsys.readouterr().out == f"The report is in {out}\n"
    assert "<h1>Ours</h1>" in out.read_text(encoding="utf-8")
    assert _cli.main([*options[:3], "--out", str(tmp_path / "no" / "page.html")]) == 2
    assert capsys.readouterr().err.startswith("error: ")


# -- in a browser ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium, driven by Selenium."""
    pytest.importorskip("selenium", reason="selenium is not installed")
    try:
        opened = open_browser()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    yield opened
    opened.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The report of 500 searches."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(archive_report(LargeArchive(), title=HOSTILE), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def opened(browser, page):
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get(page)
    yield browser
    assert browser.get_log("browser") == []  # no error in the console
    assert browser.execute_script("return window.hacked") is None


def column(browser, number):
    script = (
        "return Array.from(document.querySelectorAll('#tasks tbody tr'))"
        ".filter(row => !row.hidden).map(row => row.cells[arguments[0]].textContent)"
    )
    return browser.execute_script(script, number)


@pytest.mark.slow
def test_large_page_opens_fast_and_without_network(opened):
    times = [opened.execute_script(OPEN_SECONDS)]
    for _ in range(2):  # a machine may be busy for a moment
        opened.refresh()
        times.append(opened.execute_script(OPEN_SECONDS))
    assert 0 < min(times) < MAX_SECONDS
    assert opened.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert len(column(opened, 0)) == N_TASKS
    assert opened.find_element("id", "shown").text == "500 of 500 searches"
    assert opened.execute_script("return document.querySelectorAll('img').length") == 0


def test_table_is_sorted_by_a_click(opened):
    header = opened.find_elements("css selector", "#tasks th button")[9]
    assert header.text == "best score"
    header.click()
    scores = [float(text) for text in column(opened, 9)]
    assert scores == sorted(scores) and len(set(scores)) > 400
    header.click()
    scores = [float(text) for text in column(opened, 9)]
    assert scores == sorted(scores, reverse=True)
    opened.find_elements("css selector", "#tasks th button")[2].click()
    names = [text.lower() for text in column(opened, 2)]
    assert names == sorted(names)


def test_table_is_filtered_by_words(opened):
    opened.find_element("id", "query").send_keys("ridge 2026-03")
    shown = column(opened, 2)
    assert set(shown) == {"Ridge"} and 0 < len(shown) < 30
    assert opened.find_element("id", "shown").text == f"{len(shown)} of 500 searches"
    opened.find_element("id", "query").send_keys(" nothing-like-this")
    assert column(opened, 2) == []


def test_link_leads_to_a_search_even_if_it_is_filtered_out(opened):
    opened.find_element("id", "query").send_keys("nothing-like-this")
    link = opened.find_element("css selector", "svg a")
    target = opened.execute_script("return arguments[0].getAttribute('href')", link)
    opened.execute_script(
        "arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", link
    )
    row = opened.find_element("id", target[1:])
    for _ in range(50):  # the event is handled a little later
        if row.is_displayed():
            break
    assert row.is_displayed() and opened.current_url.endswith(target)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_can_be_read_in_light_and_dark(opened, scheme):
    feature = {"name": "prefers-color-scheme", "value": scheme}
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    colors = opened.execute_script(
        "const body = getComputedStyle(document.body);"
        "const text = getComputedStyle(document.querySelector('svg text'));"
        "return [body.color, text.fill]"
    )
    brightness = [sum(map(int, re.findall(r"\d+", color)[:3])) / 3 for color in colors]
    assert all(each > 150 if scheme == "dark" else each < 100 for each in brightness)
