"""Messages about missing libraries name a command that works."""

import re
import tomllib
from pathlib import Path

import pytest

from marginrank._utils.optional import TOGETHER, require

ROOT = Path(__file__).resolve().parents[2]
INDEPENDENT = {"engines", "verify"}  # each for exports of its own
NOT_FOR_USERS = {"dev", "docs", "test"}


def test_extras_that_need_several_libraries_are_named_with_all_of_them():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    for extra in extras.keys() - INDEPENDENT - NOT_FOR_USERS:
        names = [re.split("[<>=]", needed)[0] for needed in extras[extra]]
        if len(names) > 1 or "[" in names[0]:
            assert TOGETHER[extra].replace("'", "").split() == names
        else:
            assert extra not in TOGETHER


@pytest.mark.parametrize(
    ("extra", "command"), [("cli", "typer rich"), ("plot", "no_such"), (None, "no_such")]
)
def test_a_missing_library_is_named_with_a_command(extra, command):
    message = f"^no_such is not installed; get it with: pip install {command}$"
    with pytest.raises(ImportError, match=message):
        require("no_such.module", extra)


def test_nobody_is_told_to_install_the_package_from_an_index():
    """Nothing is released: a package of this name on an index is not this project."""
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    files += (ROOT / "src").rglob("*.py")
    wrong = re.compile(r"pip install (-\S+ )*['\"]?marginrank\b")
    found = [str(file.relative_to(ROOT)) for file in files if wrong.search(file.read_text("utf-8"))]
    assert len(files) > 100
    assert not found
