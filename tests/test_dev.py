"""What the commands install, and when; what the sanitizers leave out and what they report."""

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


OURS = "    #1 0x7f (/lib/python3/site-packages/marginrank/_core.cpython-311.so+0x1)"
OTHERS = "    #1 0x7f in LightGBM::GBDT::Predict (/lib/python3/site-packages/lightgbm/lib.so+0x1)"


@pytest.fixture
def sanitize(dev, environment, monkeypatch):
    """Return a function that runs tests of which nothing is known but a report and a status."""
    monkeypatch.setattr(dev, "preloaded", lambda sanitizer: "")
    monkeypatch.setattr(dev.tempfile, "tempdir", str(environment))
    python = environment / "bin" / "python"

    def sanitize(*pytest_args, frame=OTHERS, status=0):
        python.write_text(
            f'#!/bin/sh\necho "$@" >> {environment}/asked\n'
            f'echo "{frame}" > "${{ASAN_OPTIONS##*log_path=}}.1"\nexit {status}\n'
        )
        python.chmod(0o755)
        return dev.sanitize(environment, "sanitize", [*pytest_args])

    return sanitize


@pytest.mark.parametrize("status", [0, 1])
def test_a_report_about_our_code_fails_a_run_even_if_a_test_wanted_a_crash(sanitize, capfd, status):
    assert sanitize(frame=OURS, status=status) == 1
    shown = Path(capfd.readouterr().out.splitlines()[-1])
    assert shown.read_text() == OURS + "\n"


def test_a_report_about_the_code_of_others_is_judged_by_the_tests(sanitize, environment, capfd):
    assert sanitize() == 0
    assert not [*environment.glob("marginrank-reports-*")]
    assert sanitize(status=3) == 3
    (kept,) = environment.glob("marginrank-reports-*")
    assert f"is in {kept}" in capfd.readouterr().out


def test_what_is_left_out_is_said_with_the_reason(dev, sanitize, environment, capfd):
    sanitize("-k", "x")
    (command,) = asked(environment)
    assert command.endswith(" -k x")
    shown = capfd.readouterr().out
    for test, reason in dev.SANITIZERS["sanitize"].not_ours.items():
        assert f"--deselect {test}" in command
        assert f"{test}: {reason}" in shown


def test_what_is_left_out_exists(dev):
    """Pytest is silent about a test to leave out that was renamed."""
    for sanitizer in dev.SANITIZERS.values():
        for test in sanitizer.not_ours:
            path, name = test.split("::")
            assert f"\ndef {name}(" in (ROOT / path).read_text()
