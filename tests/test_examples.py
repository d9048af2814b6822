"""The gallery: its scripts use names that exist, and read as pages. `dev.py docs` runs them."""

import ast
from importlib import import_module
from pathlib import Path

from helpers.tables import each

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@each("path", EXAMPLES)
def test_names_that_an_example_imports_exist(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("marginrank"):
            module = import_module(node.module)
            assert all(hasattr(module, alias.name) for alias in node.names), ast.unparse(node)


@each("path", EXAMPLES)
def test_an_example_has_a_title_a_story_and_a_figure(path):
    text = path.read_text(encoding="utf-8")
    title, line, empty, *story = ast.get_docstring(ast.parse(text)).splitlines()
    assert line == "=" * len(title)
    assert not empty
    assert len(" ".join(story).split()) > 20
    assert 'plt.style.use("marginrank.plots.marginrank")' in text
    assert "plt.show()" in text
    assert not any(word in text for word in ("http", "fetch_", "download", "MARGINRANK_DATA"))


def test_examples_are_sorted_by_their_numbers():
    numbers = [path.name.split("_")[1] for path in EXAMPLES]
    assert numbers == [f"{k:02}" for k in range(1, len(EXAMPLES) + 1)]
