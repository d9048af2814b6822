"""The newcomer's two commands: what they install, and when."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def dev():
    spec = importlib.util.spec_from_file_location("dev", ROOT / "dev.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """Return an environment whose pip writes down what it is asked for."""
    (tmp_path / "bin").mkdir()
    pip = tmp_path / "bin" / "pip"
    pip.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n')
    pip.chmod(0o755)
    monkeypatch.setenv("CXX", "c++")
    monkeypatch.delenv("MARGINRANK_WERROR", raising=False)
    return tmp_path


def asked(environment):
    path = environment / "asked"
    return path.read_text().splitlines() if path.exists() else []


def test_the_demo_installs_the_command_line_only(dev, environment):
    dev.prepare(environment, "cli", [])
    dev.prepare(environment, "cli", [])
    assert asked(environment) == ["install -qq .[cli]"]


def test_one_environment_serves_both_and_is_built_once(dev, environment):
    for extra in ("cli", "dev", "cli", "dev"):
        dev.prepare(environment, extra, [])
    assert asked(environment) == ["install -qq .[cli]", "install -qq marginrank[dev]"]


def test_what_tests_need_serves_the_demo(dev, environment):
    dev.prepare(environment, "dev", [])
    dev.prepare(environment, "cli", [])
    assert asked(environment) == ["install -qq .[dev]"]


def test_a_change_is_built(dev, environment, monkeypatch):
    dev.prepare(environment, "dev", [])
    monkeypatch.setattr(dev, "fingerprint", lambda options: "changed")
    dev.prepare(environment, "cli", [])
    dev.prepare(environment, "dev", [])
    assert asked(environment)[1:] == ["install -qq .[cli]", "install -qq marginrank[dev]"]


def test_a_failed_build_is_tried_again(dev, environment):
    pip = environment / "bin" / "pip"
    works = pip.read_text()
    pip.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(SystemExit, match="The build failed"):
        dev.prepare(environment, "cli", [])
    pip.write_text(works)
    dev.prepare(environment, "cli", [])
    assert asked(environment) == ["install -qq .[cli]"]


def test_the_extra_of_the_demo_is_enough_for_the_command_line():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert {needs.partition(">=")[0] for needs in extras["cli"]} == {"typer", "rich"}
    assert any(needs.startswith("marginrank[test") for needs in extras["dev"])
    assert any("cli" in needs for needs in extras["test"])
