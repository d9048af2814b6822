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
    example = run(command, "--help").stdout.partition("\nExamples:\n")[2].partition("\n\n")[0]
    assert f"  marginrank {command}" in example
    assert all(re.match(r"  (# |marginrank )", line) for line in example.splitlines())


@pytest.mark.parametrize("command", [*COMMANDS, "clicks", "learning-curve", "report"])
def test_help_shows_what_happens_without_a_flag(run, command):
    text = run(command, "--help").stdout.partition("\nMost used flags:")[2]
    flags = [" ".join(flag.split()) for flag in re.split(r"\n  (?=-)", text)[1:]]
    silent = [flag for flag in flags if "[default: " not in flag and "[required]" not in flag]
    assert not [flag for flag in silent if re.match(r"-\S+( --\S+)? [A-Z]+ ", flag)]


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
        ("train", {"Model and loss": "--pairs", "Computing resources": "--dask"}),
        ("train-sparse", {"Most used flags": "--radius", "Path": "--plot"}),
        ("train-additive", {"Most used flags": "--smoothness", "Model and loss": "--interactions"}),
        ("train-online", {"Computing": "--chunk-documents", "Optimization": "--no-shuffle"}),
    ],
)
def test_flags_are_listed_under_headings(run, command, flags):
    text = run(command, "--help").stdout
    assert re.match(rf"Usage: marginrank {command} DATA... --model FILE \[FLAGS\]\n", text)
    parts = [part for part in text.split("\n\n") if re.match(r"[A-Z].*:\n", part)]
    names = ["Arguments", "Most used flags", "Examples", "Model and loss", "Optimization", "Path"]
    names += ["Evaluation", "Output", "Computing resources", "Columns of tables", "How LETOR text"]
    if command != "train-sparse":
        names.remove("Path")
    assert len(parts) == len(names)
    sections = dict(zip(names, parts, strict=True))
    assert all(part.startswith(name) for name, part in sections.items())
    for heading, flag in {**flags, "How": "--valid-group", "Output": "--help"}.items():
        assert any(name.startswith(heading) and flag in part for name, part in sections.items())


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
