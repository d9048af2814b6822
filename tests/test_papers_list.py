"""docs/understand/papers.md has a line for every table and figure of the five papers."""

import re
from pathlib import Path

from helpers.tables import each

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "understand" / "papers.md"
BENCHMARKS = ROOT / "benchmarks"

# Numbers of the last table and of the last figure of each paper; they are numbered from 1.
LAST = {1: (10, 7), 2: (4, 3), 3: (9, 4), 4: (0, 1), 5: (3, 1)}
STATES = {"reproduced", "in part", "not possible here", "nothing to measure"}


def lines():
    """Return the cells of the lines of the list."""
    section = PAGE.read_text(encoding="utf-8").partition("## Every table and figure")[2]
    rows = re.findall(r"^\| (\d) \| (.*) \|$", section.partition("\n## ")[0], re.MULTILINE)
    return [(int(paper), *re.split(r" ?\| ?", rest)) for paper, rest in rows]


def test_every_table_and_figure_has_one_line():
    expected = [
        (paper, f"{kind} {number}")
        for paper, counts in LAST.items()
        for kind, count in zip(("table", "figure"), counts, strict=True)
        for number in range(1, count + 1)
    ]
    assert [line[:2] for line in lines()] == expected


@each("line", lines())
def test_a_line_says_what_was_done_by_which_command_and_what_came_out(line):
    _, _, state, command, result = line
    assert state in STATES
    assert result
    measured = state in ("reproduced", "in part")
    assert bool(command) >= measured, "a figure needs the command that prints it"
    if state == "reproduced":
        assert "paper" in result or "theirs" in result


def test_commands_are_scripts_with_these_options():
    for command in {line[3].strip("`") for line in lines()} - {""}:
        script, *options = command.split()
        source = (BENCHMARKS / script).read_text(encoding="utf-8")
        for option in options:
            assert option in source, command
