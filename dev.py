"""Build marginrank in its own environment, then run the demo or the tests.

    python3 dev.py demo
    python3 dev.py test [pytest arguments]

Needs only Python 3.11 or newer, a C++ compiler and a package index.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
BUILD_INPUTS = ("core", "src", "CMakeLists.txt", "pyproject.toml")


def fingerprint(werror: bool) -> str:
    """Hash everything the installed package depends on."""
    digest = hashlib.sha256(f"{sys.version} werror={werror}".encode())
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


def prepare(env: Path) -> None:
    """Create the environment and install the project in it, unless that is already done."""
    if not (env / "bin" / "pip").exists():
        print(f"Creating the environment {env}", flush=True)
        try:
            venv.create(env, with_pip=True)
        except (OSError, subprocess.CalledProcessError) as error:
            sys.exit(
                f"Cannot create the environment {env} ({error}): install Python's venv and "
                "ensurepip modules, or choose another folder with --venv."
            )

    werror = os.environ.get("MARGINRANK_WERROR") == "1"
    current = fingerprint(werror)
    stamp = env / "marginrank.sha256"
    if stamp.exists() and stamp.read_text() == current:
        return
    require_compiler()
    print("Building marginrank and installing its tools (a few minutes the first time)", flush=True)
    command: list[str | Path] = [env / "bin" / "pip", "install", "-qq", ".[dev]"]
    if werror:
        command += ["-C", "cmake.define.MARGINRANK_WERROR=ON"]
    if run(command) != 0:
        sys.exit("The build failed: fix the first error pip shows above, then run this again.")
    stamp.write_text(current)


def run(command: list[str | Path]) -> int:
    """Run a command from the root of the project and return its exit status."""
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def test(env: Path, pytest_args: list[str]) -> int:
    """Run every linter and then pytest; return 1 if any of them fails."""
    sources = sorted(p for p in (ROOT / "core").rglob("*") if p.suffix in {".cpp", ".hpp"})
    tools = env / "bin"
    steps: dict[str, list[str | Path]] = {
        "ruff check": [tools / "ruff", "check"],
        "ruff format": [tools / "ruff", "format", "--check"],
        "mypy": [tools / "mypy", "src"],
        "clang-format": [tools / "clang-format", "--dry-run", "-Werror", *sources],
        "pytest": [tools / "python", "-m", "pytest", *pytest_args],
    }
    failed = []
    for name, command in steps.items():
        print(f"== {name}", flush=True)
        if run(command) != 0:
            failed.append(name)
    print(f"Failed: {', '.join(failed)}" if failed else "All checks passed")
    return 1 if failed else 0


def main() -> int:
    """Parse the command line and run the chosen command."""
    parser = argparse.ArgumentParser(
        description="Build marginrank in its own environment, then run the demo or the tests.",
        epilog="Other arguments of `test` are passed on to pytest.",
        allow_abbrev=False,
    )
    parser.add_argument("command", choices=["demo", "test"])
    parser.add_argument(
        "--venv", type=Path, default=ROOT / ".venv", metavar="DIR", help="environment to use"
    )
    args, rest = parser.parse_known_args()
    if args.command == "demo" and rest:
        parser.error(f"demo takes no arguments, remove: {' '.join(rest)}")

    env = args.venv.absolute()
    prepare(env)
    if args.command == "demo":
        return run([env / "bin" / "python", "examples/quickstart.py"])
    return test(env, rest)


if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036 (for whoever runs an older one)
        sys.exit("marginrank needs Python 3.11 or newer: run this script with such a python3.")
    sys.exit(main())
