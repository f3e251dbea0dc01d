"""Files of the project that must agree with each other."""

import configparser
import re
from pathlib import Path

import pytest

import sktransfer

ROOT = Path(__file__).parents[1]
yaml = pytest.importorskip("yaml")


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def pins(name):
    """Package -> version in a file of constraints."""
    lines = [line for line in read(name).splitlines() if line and not line.startswith("#")]
    return {normalized(package): version for package, version in (x.split("==") for x in lines)}


def normalized(package):
    return re.sub(r"[-_.]+", "-", package).lower()


def requirements():
    """Extra -> names of the packages it needs; "" are those of the package itself."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    extras = dict(config["options.extras_require"])
    extras[""] = config["options"]["install_requires"]
    return {
        extra: {
            normalized(re.split(r"[<>=\[]", line)[0])
            for line in lines.split("\n")
            if line.strip() and not line.startswith(("#", "sktransfer["))
        }
        for extra, lines in extras.items()
    }


@pytest.mark.parametrize("name", ["constraints.txt", "constraints-oldest.txt"])
def test_constraints_pin_what_the_tests_need(name):
    needed = requirements()
    pinned = pins(name)
    wanted = needed[""] | needed["test"] | needed["remote"] | needed["plot"]
    if name == "constraints.txt":
        wanted |= needed["dev"] | needed["bench"] | needed["docs"]
    assert {package for package in wanted if package not in pinned} == set()


def test_constraints_are_sorted():
    lines = read("constraints.txt").splitlines()[2:]
    assert lines == sorted(lines, key=str.lower)


def test_oldest_constraints_are_the_lower_bounds():
    bounds = dict(re.findall(r"^ +([\w-]+)>=([\d.]+)", read("setup.cfg"), re.MULTILINE))
    oldest = pins("constraints-oldest.txt")
    for package in ("numpy", "scipy", "scikit-learn", "joblib", "matplotlib", "pandas"):
        assert f"{oldest[package]}.".startswith(f"{bounds[package]}."), package


def test_citation_has_the_version_and_the_papers():
    citation = yaml.safe_load(read("CITATION.cff"))
    assert citation["version"] == sktransfer.__version__
    named = {paper["authors"][0]["family-names"] for paper in citation["references"]}
    assert named == {"Law", "Jomaa", "Salinas", "Perrone", "Yogatama"}


def test_workflow_runs_the_checks_of_the_repository():
    workflow = yaml.safe_load(read(".github/workflows/ci.yml"))
    steps = workflow["jobs"]["check"]["steps"]
    assert ".ci/run" in [step.get("run") for step in steps]
    for target in re.findall(r"^step \S+ make (\S+)", read(".ci/run"), re.MULTILINE):
        assert re.search(rf"^{target}:", read("Makefile"), re.MULTILINE), target


def test_pre_commit_uses_the_pinned_ruff():
    hooks = yaml.safe_load(read(".pre-commit-config.yaml"))["repos"][0]["hooks"]
    needed = {package for hook in hooks for package in hook.get("additional_dependencies", [])}
    assert needed == {f"ruff=={pins('constraints.txt')['ruff']}"}


@pytest.mark.parametrize("path", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*_*.yml")), ids=str)
def test_issue_templates_have_what_github_needs(path):
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= form.keys()
    ids = [field["id"] for field in form["body"]]
    assert len(set(ids)) == len(ids)


def test_show_versions_prints_every_library(capsys):
    sktransfer.show_versions()
    printed = capsys.readouterr().out
    names = re.findall(r"^ *([\w-]+): ", printed, re.MULTILINE)
    assert {"python", "sktransfer", "numpy", "scikit-learn", "torch", "matplotlib"} <= set(names)
    assert sktransfer.__version__ in printed


@pytest.mark.parametrize(
    "name",
    ["README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/inspection.md", "docs/releasing.md"],
)
def test_links_between_pages_resolve(name):
    folder = (ROOT / name).parent
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", read(name))
    # Links to ../.. lead out of the checkout, to other pages of the repository on the web.
    inside = [link for link in links if not link.startswith("../../actions/")]
    assert [link for link in inside if not (folder / link).exists()] == []


def test_shipped_models_and_tasks_are_small():
    package = ROOT / "sktransfer"
    shipped = [*package.glob("pretrained/*.npz"), *package.glob("archive/starter/*.joblib")]
    assert len(shipped) > 20 and sum(file.stat().st_size for file in shipped) < 4e6
