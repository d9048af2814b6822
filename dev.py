"""Build marginrank in its own environment, then run the demo or the tests.

    python3 dev.py demo
    python3 dev.py test [pytest arguments]
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
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent
BUILD_INPUTS = ("core", "src", "CMakeLists.txt", "pyproject.toml")
EVERYTHING = "dev"  # the extra that holds all others
PARALLEL = ["-n", "auto", "--maxprocesses", "4", "--dist", "worksteal"]


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


def prepare(env: Path, extra: str, options: list[str]) -> None:
    """Create the environment and install the project and an extra of it, unless that is done."""
    if not (env / "bin" / "pip").exists():
        print(f"Creating the environment {env}", flush=True)
        try:
            venv.create(env, with_pip=True)
        except (OSError, subprocess.CalledProcessError) as error:
            sys.exit(
                f"Cannot create the environment {env} ({error}): install Python's venv and "
                "ensurepip modules, or choose another folder with --venv."
            )

    if os.environ.get("MARGINRANK_WERROR") == "1":
        options = [*options, "MARGINRANK_WERROR=ON"]
    current = fingerprint(options)
    stamp = env / "marginrank.sha256"  # the fingerprint, and the extras that are there
    built, *extras = (stamp.read_text() if stamp.exists() else "").split() or [""]
    if built != current:
        require_compiler()
        print("Building marginrank (a minute or two the first time)", flush=True)
        install(env, ".", extra, options)
        extras = []
    elif not {extra, EVERYTHING} & {*extras}:
        print(f"Installing what marginrank[{extra}] needs", flush=True)
        install(env, "marginrank", extra, options)  # is there: only the extra is missing
    else:
        return
    stamp.write_text(" ".join([current, *extras, extra]))


def install(env: Path, package: str, extra: str, options: list[str]) -> None:
    """Install an extra, and the package itself unless it is there."""
    command: list[str | Path] = [env / "bin" / "pip", "install", "-qq", f"{package}[{extra}]"]
    for option in options:
        command += [f"--config-settings=cmake.define.{option}"]  # -C is pip 23.1
    if run(command) != 0:
        sys.exit("The build failed: fix the first error pip shows above, then run this again.")


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
        description="Build marginrank in its own environment, then run the demo or the tests.",
        epilog="Other arguments of test and the sanitizers are passed on to pytest.",
        allow_abbrev=False,
    )
    parser.add_argument("command", choices=["demo", "test", *SANITIZERS, "fuzz"])
    parser.add_argument(
        "--venv", type=Path, metavar="DIR", help="environment to use (default: .venv)"
    )
    args, rest = parser.parse_known_args()
    if args.command == "demo" and rest:
        parser.error(f"demo takes no arguments, remove: {' '.join(rest)}")

    if args.command == "fuzz":
        return run([ROOT / "fuzz" / "run", *rest])
    checked = args.command in SANITIZERS
    env = (args.venv or ROOT / (f".venv-{args.command}" if checked else ".venv")).absolute()
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
