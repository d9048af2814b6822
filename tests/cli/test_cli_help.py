"""Help, versions, missing extras, and the modules that help imports."""

import os
import re
import subprocess
import sys

import pytest

import marginrank

TRAINING = ["train", "train-sparse", "train-additive", "train-online", "tune", "fuse"]
COMMANDS = [
    *TRAINING,
    "predict",
    "evaluate",
    "compare",
    "convert",
    "explain",
    "export",
    "inspect",
    "check",
    "features",
    "compat",
    "demo",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(run, command):
    assert f"Example:\n  marginrank {command} " in run(command, "--help").stdout


@pytest.mark.parametrize("command", [*COMMANDS, "clicks", "learning-curve", "report"])
def test_help_shows_what_happens_without_a_flag(run, command):
    text = run(command, "--help").stdout.partition("\nMost used flags:")[2]
    flags = [" ".join(flag.split()) for flag in re.split(r"\n  (?=-)", text)[1:]]
    silent = [flag for flag in flags if "[default: " not in flag and "[required]" not in flag]
    assert not [flag for flag in silent if re.match(r"\S+( --\S+)? <", flag)]


def test_help_names_the_commands(run):
    done = run("--help")
    assert "Example" in done.stdout
    assert all(f"\n  {command} " in done.stdout for command in COMMANDS)


def test_version(run):
    assert run("--version").stdout == f"marginrank {marginrank.__version__}\n"


def test_unknown_command(run):
    assert "Did you mean 'train'" in run("trian", code=2).stderr


def test_module_of_the_cli_runs_too():
    command = [sys.executable, "-m", "marginrank.cli", "--version"]
    assert subprocess.run(command, capture_output=True, check=True).stdout.startswith(b"marginrank")


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("train", {"Data": "--pairs", "Model": "--margin"}),
        ("train-sparse", {"Most used flags": "--radius", "Path": "--plot"}),
        ("train-additive", {"Most used flags": "--smoothness", "Model": "--interactions"}),
        ("train-online", {"Data": "--chunk-documents", "Optimization": "--no-shuffle"}),
    ],
)
def test_flags_are_listed_under_headings(run, command, flags):
    parts = run(command, "--help").stdout.split("\n\n")
    sections = {part.partition(":\n")[0]: part for part in parts if part[0] != " "}
    names = ["Arguments", "Data", "Model", "Optimization", "Path", "Evaluation", "Output"]
    assert [name for name in sections if name in names] == [
        name for name in names if name != "Path" or command == "train-sparse"
    ]
    start = list(sections).index("Arguments")
    assert list(sections)[start : start + 3] == ["Arguments", "Most used flags", "Example"]
    for heading, flag in {**flags, "Evaluation": "--valid-group", "Output": "--help"}.items():
        assert flag in sections[heading]


@pytest.mark.parametrize("command", TRAINING)
def test_help_imports_nothing_heavy(command):
    code = (
        "import sys\n"
        "from marginrank.cli import main\n"
        f"sys.argv = ['marginrank', {command!r}, '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(sorted({'numpy', 'scipy', 'sklearn', 'pandas'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_help_loads_at_most_twice_as_many_modules_as_numpy():
    """Time would tell less: it depends on what else the machine does."""

    def n_loaded(code):
        code = f"import sys\n{code}\nprint(len(sys.modules))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        return int(done.stdout.split()[-1])

    shown = (
        "from marginrank.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    assert 'numpy' not in sys.modules"
    )
    assert n_loaded(shown) <= 2 * n_loaded("import numpy")


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_missing_extra_is_named(tmp_path, package):
    (tmp_path / f"{package}.py").write_text(f"raise ModuleNotFoundError(name={package!r})")
    paths = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": paths}
    command = [sys.executable, "-m", "marginrank", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 2
    assert done.stderr == (
        f"marginrank: {package} is not installed; get it with: pip install typer rich\n"
    )


def test_public_names_are_listed_and_found():
    assert set(marginrank.__all__) <= set(dir(marginrank))
    for name in marginrank.__all__:
        assert getattr(marginrank, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        marginrank.no_such_name  # noqa: B018
