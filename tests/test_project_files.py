"""Files about the project: workflows, templates, citation, recipe and changelog agree."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from helpers.tables import each

from marginrank import __version__

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
DEV_COMMANDS = re.findall(
    r"^    python3 dev\.py ([\w-]+)", (ROOT / "dev.py").read_text("utf-8"), re.MULTILINE
)


def load(path):
    return yaml.safe_load(path.read_text("utf-8"))


def jobs(path):
    return load(path)["jobs"].values()


@each("path", WORKFLOWS)
def test_a_workflow_runs_commands_of_dev_py_and_nothing_else(path):
    commands = [step["run"] for job in jobs(path) for step in job["steps"] if "run" in step]
    assert commands
    for command in commands:
        assert re.fullmatch(r"python dev\.py [\w-]+", command), command
        assert command.split()[-1] in DEV_COMMANDS


@each("path", WORKFLOWS)
def test_a_workflow_reads_only_and_uses_actions_of_the_host_only(path):
    workflow = load(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert {True, "name", "jobs", "permissions"} == workflow.keys()  # YAML reads "on" as True
    for job in jobs(path):
        used = [step["uses"] for step in job["steps"] if "uses" in step]
        assert used[0].startswith("actions/checkout@")
        assert all(one.startswith("actions/") for one in used)


def test_workflows_test_every_version_of_python_that_the_metadata_name():
    named = [one.rpartition(" ")[2] for one in PROJECT["classifiers"] if ":: 3." in one]
    matrix = load(ROOT / ".github/workflows/tests.yml")["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["python"] == named
    assert named[0] == PROJECT["requires-python"].removeprefix(">=")


@each("path", FORMS)
def test_an_issue_form_asks_for_something(path):
    form = load(path)
    assert "blank_issues_enabled" in form or all(
        field["attributes"]["label"] for field in form["body"]
    )


def test_the_version_is_the_same_everywhere():
    citation = load(ROOT / "CITATION.cff")
    recipe = load(ROOT / "conda/recipe/recipe.yaml")
    assert {PROJECT["version"], citation["version"], recipe["context"]["version"]} == {__version__}
    release = f"## [{__version__}] - {citation['date-released']}"
    assert release in (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines()
    assert citation["license"] == PROJECT["license"] == recipe["about"]["license"]


def test_the_recipe_needs_what_the_package_needs():
    recipe = load(ROOT / "conda/recipe/recipe.yaml")
    needed = [f"python{PROJECT['requires-python']}", *PROJECT["dependencies"]]
    needed += PROJECT["optional-dependencies"]["cli"]
    assert [one.replace(" ", "") for one in recipe["requirements"]["run"]] == needed
    scripts = [f"{name} = {place}" for name, place in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts


@pytest.mark.parametrize("name", ["SECURITY.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md"])
def test_links_of_pages_at_the_top_lead_to_files(name):
    text = (ROOT / name).read_text("utf-8")
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (ROOT / target).exists(), target


def test_nobody_is_told_to_install_what_is_not_released():
    """A package of this name from an index would not be ours."""
    texts = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    for path in [*texts, ROOT / "CONTRIBUTING.md"]:
        found = re.findall(r"(?:pip|pipx|uv) install [\"']?marginrank", path.read_text("utf-8"))
        assert not found, path
