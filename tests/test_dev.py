"""What the commands install and call, and when; what the sanitizers leave out and report."""

import importlib.util
import os
import re
import sys
from pathlib import Path

import check_wheel
import pytest

from marginrank import _core

ROOT = Path(__file__).resolve().parents[1]
INSTALL = "install -v --no-compile"


@pytest.fixture
def dev():
    spec = importlib.util.spec_from_file_location("dev", ROOT / "dev.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def environment(dev, tmp_path, monkeypatch):
    """Return an environment whose pip writes down what it is asked for."""
    (tmp_path / "bin").mkdir()
    pip = tmp_path / "bin" / "pip"
    pip.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n')
    pip.chmod(0o755)
    monkeypatch.setenv("CXX", "c++")
    monkeypatch.delenv("MARGINRANK_WERROR", raising=False)
    monkeypatch.setattr(dev, "fresh_wheel", lambda: None)  # whatever is in dist/ here
    return tmp_path


def asked(environment):
    path = environment / "asked"
    return path.read_text().splitlines() if path.exists() else []


def test_the_demo_installs_the_command_line_only(dev, environment):
    dev.prepare(environment, "cli", [])
    dev.prepare(environment, "cli", [])
    assert asked(environment) == [f"{INSTALL} .[cli]"]


def test_one_environment_serves_both_and_is_built_once(dev, environment):
    for extra in ("cli", "dev", "cli", "dev"):
        dev.prepare(environment, extra, [])
    assert asked(environment) == [f"{INSTALL} .[cli]", f"{INSTALL} marginrank[dev]"]


def test_what_tests_need_serves_the_demo(dev, environment):
    dev.prepare(environment, "dev", [])
    dev.prepare(environment, "cli", [])
    assert asked(environment) == [f"{INSTALL} .[dev]"]


def test_a_change_is_built(dev, environment, monkeypatch):
    dev.prepare(environment, "dev", [])
    monkeypatch.setattr(dev, "fingerprint", lambda options: "changed")
    dev.prepare(environment, "cli", [])
    dev.prepare(environment, "dev", [])
    assert asked(environment)[1:] == [f"{INSTALL} .[cli]", f"{INSTALL} marginrank[dev]"]


def test_a_failed_build_shows_its_first_error_and_is_tried_again(dev, environment, capfd):
    pip = environment / "bin" / "pip"
    works = pip.read_text()
    pip.write_text("#!/bin/sh\necho one; echo 'a.cpp:1: error: no ;' >&2; echo three; exit 1\n")
    with pytest.raises(SystemExit, match=r"The build failed: .* All output: .*build\.log"):
        dev.prepare(environment, "cli", [])
    assert capfd.readouterr().out.endswith("\na.cpp:1: error: no ;\nthree\n")
    assert (environment / "build.log").read_text().startswith("one\n")
    pip.write_text(works)
    dev.prepare(environment, "cli", [])
    assert asked(environment) == [f"{INSTALL} .[cli]"]


PIP_OUTPUT = """\
  Running command pip subprocess to install build dependencies
  Downloading cmake-4.1.0-py3-none-manylinux.whl.metadata (6.5 kB)
  Downloading https://example.org/cmake-4.1.0-py3-none-manylinux.whl (29.7 MB)
  *** Configuring CMake...
  [2/37] Building CXX object CMakeFiles/_core.dir/core/bindings/hessian.cpp.o
  [37/37] Linking CXX shared module _core.so
Installing collected packages: typer, rich, marginrank
Successfully installed marginrank-0.1.0 rich-14.0.0 typer-0.16.0
"""


def test_a_build_shows_how_far_it_is(dev, environment, capfd, monkeypatch):
    monkeypatch.delenv("CMAKE_BUILD_PARALLEL_LEVEL", raising=False)
    (environment / "printed").write_text(PIP_OUTPUT)
    pip = environment / "bin" / "pip"
    cores = 'echo "$CMAKE_BUILD_PARALLEL_LEVEL" > cores'
    pip.write_text(f"#!/bin/sh\ncd {environment}; cat printed; {cores}\n")
    dev.prepare(environment, "cli", [])
    first, *steps = capfd.readouterr().out.splitlines()
    assert first.startswith(f"Building marginrank on {dev.n_cores()} cores: ")
    assert [step.partition(" s  ")[2] for step in steps] == [
        "fetching build tools",
        "downloading cmake-4.1.0-py3-none-manylinux.whl, 29.7 MB",
        "configuring the build",
        "compiled 2 of 37: bindings/hessian.cpp",
        "packages to install: 3",
        "installed",
    ]
    assert (environment / "cores").read_text().strip() == str(dev.n_cores())


@pytest.fixture
def sources(dev, tmp_path, monkeypatch):
    """Return a folder of a project with one source file and a wheel that is newer."""
    root = tmp_path / "project"
    (root / "dist").mkdir(parents=True)
    (root / "pyproject.toml").write_text("")
    (root / "dist" / "marginrank-1.0-cp311-none-any.whl").write_text("")
    os.utime(root / "pyproject.toml", (100, 100))
    os.utime(next((root / "dist").iterdir()), (200, 200))
    monkeypatch.setattr(dev, "ROOT", root)
    monkeypatch.setattr(dev, "BUILD_INPUTS", ("pyproject.toml",))
    return root


def test_a_wheel_is_as_fresh_as_the_sources(dev, sources):
    (wheel,) = (sources / "dist").iterdir()
    assert dev.fresh_wheel() == wheel
    os.utime(sources / "pyproject.toml", (300, 300))
    assert dev.fresh_wheel() is None
    wheel.unlink()
    assert dev.fresh_wheel() is None


def test_the_demo_takes_a_fresh_wheel_and_the_tests_build(dev, environment, monkeypatch, capfd):
    monkeypatch.setattr(dev, "fresh_wheel", lambda: Path("dist/some.whl"))
    for _ in range(2):
        dev.prepare(environment, "cli", [], wheels=True)
    from_wheel = [
        "install -qq --no-deps --force-reinstall dist/some.whl",
        f"{INSTALL} marginrank[cli]",
    ]
    assert asked(environment) == from_wheel
    assert "Building" not in capfd.readouterr().out
    dev.prepare(environment, "dev", [])
    dev.prepare(environment, "cli", [], wheels=True)  # what was built serves the demo
    assert asked(environment) == [*from_wheel, f"{INSTALL} .[dev]"]


def test_a_wheel_for_another_python_is_not_used(dev, environment, monkeypatch):
    monkeypatch.setattr(dev, "fresh_wheel", lambda: Path("dist/some.whl"))
    pip = environment / "bin" / "pip"
    pip.write_text(pip.read_text() + 'case "$*" in *some.whl) exit 1;; esac\n')
    dev.prepare(environment, "cli", [], wheels=True)
    assert asked(environment)[1:] == [f"{INSTALL} .[cli]"]


def test_the_demo_draws_a_picture_and_says_how_to_go_on(dev, environment, monkeypatch, capfd):
    python = environment / "bin" / "python"
    python.write_text(f'#!/bin/sh\necho "$@" >> {environment}/asked\n')
    python.chmod(0o755)
    monkeypatch.setattr("sys.argv", ["dev.py", "demo", "--venv", str(environment)])
    assert dev.main() == 0
    assert asked(environment) == [f"{INSTALL} .[cli,plot]", "-m marginrank demo --plot demo.png"]
    printed = capfd.readouterr().out.splitlines()
    assert any(line.startswith("Running marginrank demo") for line in printed)
    assert f". {environment}/bin/activate" in printed[-1]


def test_the_tests_say_beforehand_how_long_they_take_and_what_is_left_out(
    dev, tmp_path, monkeypatch, capsys
):
    monkeypatch.delenv("MARGINRANK_DATA", raising=False)
    dev.announce(tmp_path, [])
    shown = capsys.readouterr().out
    assert dev.TEST_TIME in shown
    files = dev.tests_of_real_data()
    assert ROOT / "tests" / "test_real_data.py" in files
    assert f"tests of real data in {len(files)} files" in shown

    (tmp_path / "test-minutes").write_text("7")
    monkeypatch.setenv("MARGINRANK_DATA", "somewhere")
    dev.announce(tmp_path, [])
    shown = capsys.readouterr().out
    assert "took 7 minutes last time" in shown
    assert "MARGINRANK_DATA" not in shown
    dev.announce(tmp_path, ["-k", "one"])  # which may take seconds
    assert "minutes" not in capsys.readouterr().out


def test_quick_tests_run_first_and_no_test_runs_twice(dev, tmp_path, monkeypatch):
    commands = []
    monkeypatch.setattr(dev, "run", lambda command, _: commands.append([*map(str, command)]) or 0)
    monkeypatch.setattr(dev, "report", lambda command: (0, ""))
    dev.test(tmp_path, [], fast=False)
    first, second = [command for command in commands if "pytest" in command]
    assert first[-len(dev.FAST) :] == dev.FAST
    assert second[-len(dev.FAST) :] == [f"--ignore={path}" for path in dev.FAST]
    assert all((ROOT / path).exists() for path in dev.FAST)

    commands.clear()
    dev.test(tmp_path, ["-x"], fast=True)
    *linters, tests = commands
    assert linters
    names = r"/(ruff|codespell)( |$)|/wording\.py$"
    assert all(re.search(names, " ".join(command)) for command in linters)
    assert tests[-len(dev.FAST) - 1 :] == ["-x", *dev.FAST]


@pytest.mark.parametrize(("arguments", "is_kept"), [([], True), (["-k", "one"], False)])
def test_the_time_of_all_tests_is_kept(dev, tmp_path, monkeypatch, arguments, is_kept):
    monkeypatch.setattr(dev, "run", lambda command, environment: 0)
    monkeypatch.setattr(dev, "report", lambda command: (0, ""))
    assert dev.test(tmp_path, arguments, fast=False) == 0
    assert (tmp_path / "test-minutes").exists() is is_kept


@pytest.mark.parametrize(("status", "told"), [(0, "All checks passed"), (1, "Failed: mypy")])
def test_mypy_runs_beside_the_tests(dev, tmp_path, monkeypatch, capsys, status, told):
    (tmp_path / "bin").mkdir()
    mypy = tmp_path / "bin" / "mypy"
    mypy.write_text(f"#!{sys.executable}\nprint('found nothing'); raise SystemExit({status})\n")
    mypy.chmod(0o755)
    monkeypatch.setattr(dev, "run", lambda command, environment: 0)
    assert dev.test(tmp_path, [], fast=False) == status
    assert capsys.readouterr().out.endswith(f"== mypy\nfound nothing\n{told}\n")


@pytest.mark.parametrize(("status", "steps"), [(0, ["sphinx", "check_links.py"]), (1, ["sphinx"])])
def test_the_site_is_built_and_then_its_links_are_checked(
    dev, tmp_path, monkeypatch, status, steps
):
    commands = []
    monkeypatch.setattr(dev, "ROOT", tmp_path)
    monkeypatch.setattr(dev, "run", lambda command: commands.append(command) or status)
    assert dev.docs(tmp_path / "env") == status
    for command, step in zip(commands, steps, strict=True):
        assert step in " ".join(map(str, command))
    assert "-W" in commands[0]


def test_the_extra_of_the_demo_is_enough_for_the_command_line():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert {needs.partition(">=")[0] for needs in extras["cli"]} == {"typer", "rich"}
    assert any(needs == "marginrank[docs,test]" for needs in extras["dev"])
    assert any("cli" in needs for needs in extras["test"])


def test_lower_bounds_are_installed_as_they_are_declared(dev, environment):
    dev.prepare(environment, "test", [], ["numpy==1.26"])
    assert asked(environment) == [f"{INSTALL} .[test] numpy==1.26"]
    bounds = [needs.partition("==") for needs in dev.lowest_versions()]
    assert [name for name, *_ in bounds] == ["numpy", "scipy", "scikit-learn", "threadpoolctl"]
    assert all(version[0].isdigit() for *_, version in bounds)


PROGRAM = """#!/bin/sh
echo "{name} PATH=$PATH CXX=$CXX $@" >> "{log}"
case "{name} $1" in
  "{fails}"*) exit 1;;
  "pip wheel") mkdir "$5"; : > "$5/{wheel}";;
  "auditwheel repair") mkdir "$3"; : > "$3/{wheel}";;
esac
"""


@pytest.fixture
def programs(dev, tmp_path, monkeypatch):
    """Return a function that makes new environments have programs that say how they are called."""
    monkeypatch.setattr(dev, "ROOT", tmp_path)
    monkeypatch.setattr(dev.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("CXX", "c++")

    def programs(wheel, fails="nothing"):
        def create(env):
            (env / "bin").mkdir(parents=True)
            for name in ("pip", "python", "auditwheel", "abi3audit"):
                path = env / "bin" / name
                log = tmp_path / "asked"
                path.write_text(PROGRAM.format(name=name, log=log, wheel=wheel, fails=fails))
                path.chmod(0o755)

        monkeypatch.setattr(dev, "create", create)

    return programs


@pytest.mark.parametrize(("tag", "audited"), [("cp311-cp311", False), ("cp312-abi3", True)])
def test_a_wheel_is_repaired_and_audited_if_it_is_for_several_versions(
    dev, programs, tmp_path, tag, audited
):
    name = f"marginrank-1.0-{tag}-manylinux_2_28_x86_64.whl"
    programs(name)
    assert dev.build_wheel() == tmp_path / "dist" / name
    called = [line.split()[0] for line in asked(tmp_path)]
    assert called == ["pip", "pip", "auditwheel"] + ["abi3audit"] * audited


@pytest.mark.parametrize("fails", ["pip install", "pip wheel", "auditwheel", "abi3audit"])
def test_a_wheel_that_does_not_pass_is_not_kept(dev, programs, tmp_path, fails):
    programs("marginrank-1.0-cp312-abi3-linux_x86_64.whl", fails)
    with pytest.raises(SystemExit, match=r"No wheel( that works)?:"):
        dev.build_wheel()
    assert not (tmp_path / "dist").exists()


def test_a_wheel_is_tried_where_nothing_can_be_compiled(dev, programs, tmp_path):
    programs("")
    dev.try_wheel(tmp_path / "some.whl")
    install, check, demo = asked(tmp_path)
    for command in (install, check, demo):
        path = Path(command.partition("PATH=")[2].split()[0])  # a single folder
        assert (path.name, path.parent.name) == ("bin", "env")
        assert " CXX=false " in command
    assert install.endswith(f"install -qq --only-binary :all: {tmp_path}/some.whl[cli]")
    assert check.endswith("tests/check_wheel.py")
    assert demo.endswith("-m marginrank demo")


def test_a_wheel_that_does_not_work_is_told(dev, programs, tmp_path):
    programs("", fails="python -m")
    with pytest.raises(SystemExit, match="No wheel that works"):
        dev.try_wheel(tmp_path / "some.whl")


def test_an_installed_package_is_checked_by_a_fit(monkeypatch, capsys):
    monkeypatch.setattr(check_wheel.platform, "machine", lambda: "any")
    check_wheel.main()
    assert "has kernels for baseline" in capsys.readouterr().out


def test_a_wheel_without_all_kernels_does_not_pass(monkeypatch):
    monkeypatch.setattr(check_wheel.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(_core, "compiled_instruction_sets", lambda: ["baseline"])
    with pytest.raises(SystemExit, match="lacks kernels for x86-64-v3, x86-64-v4"):
        check_wheel.main()


def test_a_wheel_without_its_types_does_not_pass(monkeypatch, tmp_path):
    monkeypatch.setattr(_core, "__file__", str(tmp_path / "_core.so"))
    assert check_wheel.missing_files() == ["py.typed", "_core.pyi", "plots/marginrank.mplstyle"]
    with pytest.raises(SystemExit):
        check_wheel.main()


def test_wheels_of_a_release_are_built_by_cibuildwheel(dev, programs, tmp_path, monkeypatch):
    programs("")
    monkeypatch.setattr(dev, "ROOT", tmp_path)
    assert dev.release_wheels() == 0
    install, build = asked(tmp_path)
    assert dev.RELEASE_TOOL in install
    assert f"-m cibuildwheel --output-dir {tmp_path}/dist" in build


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
