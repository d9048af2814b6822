"""README.md and docs/ say what is true: their examples run, and what they name exists.

The examples of a page share a namespace and a folder, which begins with the files train.txt,
valid.txt and test.txt.
"""

import importlib
import io
import os
import re
import shlex
import subprocess
import sys
import textwrap
import warnings
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pytest
from helpers.tables import each

from marginrank import RankingData, dump_letor, make_ranking
from marginrank.cli import app
from marginrank.objective.losses import LOSSES
from marginrank.solvers import SOLVERS

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
PAGES_TO_CHECK = [*PAGES, ROOT / "CONTRIBUTING.md"]

SHELL = {"sh", "bash"}
CONSOLE = "console"  # commands after "$ ", each with what it prints
OTHER_LANGUAGES = {"", "json"}  # to be read, not to be run
# Commands that build or install, or measure for minutes, begin like this.
NOT_RUN = ("pip install", "python3 dev.py", "python benchmarks/")


class Example(NamedTuple):
    """A fenced block of a page, and the line where its text begins."""

    language: str
    line: int
    text: str


def examples_of(page):
    text = page.read_text(encoding="utf-8")
    blocks = list(re.finditer(r"^ *```(\w*)\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL))
    assert 2 * len(blocks) == text.count("```"), f"{name_of(page)} has a block that does not end"
    return [
        Example(block[1], text.count("\n", 0, block.start(2)) + 1, textwrap.dedent(block[2]))
        for block in blocks
    ]


def name_of(page):
    return str(page.relative_to(ROOT))


@pytest.fixture(scope="session")
def marginrank_on_path(tmp_path_factory):
    """Return a PATH on which `marginrank` is the package that is tested."""
    folder = tmp_path_factory.mktemp("bin")
    command = folder / "marginrank"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m marginrank "$@"\n')
    command.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in a folder with data."""
    X, y, qid = make_ranking(60, 10, 6, random_state=0)
    for part, name in enumerate(("train.txt", "valid.txt", "test.txt")):
        rows = qid % 3 == part
        dump_letor(RankingData(X[rows], y[rows], qid[rows]), tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def registries():
    """Take out again what a page adds to the tables of losses and solvers."""
    before = [(table, set(table)) for table in (LOSSES, SOLVERS)]
    yield
    for table, names in before:
        for name in set(table) - names:
            del table[name]


def run(command, path):
    """Run a command, and return its exit code and all that it prints.

    Commands of marginrank are run in this process: another one takes a second to begin.
    """
    if command.startswith("marginrank ") and not re.search(r"[|<>&;$*#]", command):
        return run_here(shlex.split(command)[1:])
    done = subprocess.run(
        ["sh", "-c", command],
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    return done.returncode, done.stdout


def run_here(words):
    printed = io.StringIO()
    with (
        redirect_stdout(printed),
        redirect_stderr(printed),
        warnings.catch_warnings(action="default"),  # as in a process of its own
        pytest.raises(SystemExit) as exit,
    ):
        app.app(words, prog_name="marginrank")
    return exit.value.code or 0, printed.getvalue()


def run_commands(text, where, path):
    """Run each line of a block."""
    for line in text.replace("\\\n", "").splitlines():
        command = re.sub(r" +#.*", "", line)
        if not command.startswith(NOT_RUN):
            code, printed = run(command, path)
            assert code == 0, f"{where}: {command}\n{printed}"


def run_session(text, where, path):
    """Run each command of a session, which shows what it prints; it may be refused."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        assert run(command, path)[1] == expected, f"{where}: {command}"


@pytest.mark.usefixtures("folder", "registries")
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_examples_run(page, marginrank_on_path):
    namespace = {"__name__": "__main__"}
    for example in examples_of(page):
        where = f"{name_of(page)}:{example.line}"
        if example.language == "python":
            exec(compile(example.text, where, "exec"), namespace)
        elif example.language in SHELL:
            run_commands(example.text, where, marginrank_on_path)
        elif example.language == CONSOLE:
            run_session(example.text, where, marginrank_on_path)
        else:
            assert example.language in OTHER_LANGUAGES, where
            assert not re.search(r"^(\$ )?marginrank ", example.text, re.MULTILINE), (
                f"{where}: a block of commands begins with ```sh or ```console"
            )


def prose_of(page):
    """Return a page without its blocks."""
    return re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def inline_code_of(page):
    return re.findall(r"`([^`\n]+)`", prose_of(page))


@cache
def anchors_of(page):
    """Return what links to the headings of a page end in."""
    headings = re.findall(r"^#+ (.*)$", prose_of(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@each("page", PAGES_TO_CHECK)
def test_links_lead_somewhere(page):
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose_of(page)):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        known = file.exists() and (not anchor or anchor in anchors_of(file))
        if not known and "://" not in target:
            broken.append(target)
    assert broken == []


FOLDERS = ("src", "core", "tests", "docs", "benchmarks", "examples", "fuzz")


@cache
def paths_of_the_project():
    """Return all files and folders with sources."""
    inside = chain.from_iterable((ROOT / folder).rglob("*") for folder in FOLDERS)
    return [str(path) for path in (*ROOT.iterdir(), *inside)]


def is_path(code):
    """Whether inline code names a source file, or something in a folder of the project."""
    is_source = re.fullmatch(r"[\w./-]+\.(py|pyi|hpp|cpp|md)", code)
    return is_source or re.fullmatch(rf"({'|'.join(FOLDERS)})/[\w./-]*", code)


@each("page", PAGES_TO_CHECK)
def test_files_that_are_named_exist(page):
    named = [code.rstrip("/") for code in inline_code_of(page) if is_path(code)]
    known = paths_of_the_project()
    assert [name for name in named if not any(path.endswith(f"/{name}") for path in known)] == []


def exists(name):
    """Whether a dotted name can be imported."""
    parts = name.split(".")
    for k in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:k]))
        except ImportError:
            continue
        try:
            for part in parts[k:]:
                found = getattr(found, part)
        except AttributeError:
            return False
        return True
    return False


@each("page", PAGES_TO_CHECK)
def test_names_that_are_mentioned_exist(page):
    names = [
        re.sub(r"^metrics\.", "marginrank.metrics.", match[0])
        for code in inline_code_of(page)
        if (match := re.match(r"(marginrank|metrics)(\.[A-Za-z_]\w*)+", code))
    ]
    assert [name for name in names if not exists(name)] == []


COMMANDS = {name: app.command(name) for name in app.COMMANDS}


def flags_of(command):
    return {flag for p in command.params for flag in (*p.opts, *p.secondary_opts)} | {"--help"}


# Spellings of earlier versions, of which a page says that they are refused.
FORMER = {"train --l1", "train --online", "train --additive"}
ALL_FLAGS = set().union({"--version"}, *map(flags_of, COMMANDS.values()))


def unknown_words(code):
    """Return the command and the flags of inline code that marginrank does not have."""
    words = code.split()
    if words[0].startswith("--"):
        known = ALL_FLAGS
    elif words[0] in COMMANDS:
        known = flags_of(COMMANDS[words[0]])
    elif words[0] == "marginrank" and len(words) > 1 and words[1].islower():
        return unknown_words(code.partition(" ")[2]) if words[1] in COMMANDS else [words[1]]
    else:
        return []
    return [word for word in words if word.startswith("--") and word.partition("=")[0] not in known]


@each("page", PAGES_TO_CHECK)
def test_commands_and_flags_that_are_mentioned_exist(page):
    mentioned = [code for code in inline_code_of(page) if code not in FORMER]
    assert [code for code in mentioned if unknown_words(code)] == []
