"""The site has a page for every public name and command, and a way to every page."""

import importlib
import re
from pathlib import Path

import pytest

from marginrank.cli import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = {path: path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")}
PUBLIC = ("marginrank", *(f"marginrank.{m}" for m in ("metrics", "plots", "models", "dask")))


@pytest.fixture
def extension(monkeypatch):
    """Return a function that imports a module of docs/_ext."""
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(DOCS / "_ext")
    return importlib.import_module


def names_in_reference():
    """Return the full names that reference/api.rst lists, module by module."""
    text = (DOCS / "reference" / "api.rst").read_text(encoding="utf-8")
    modules = re.split(r"^\.\. currentmodule:: (\S+)$", text, flags=re.MULTILINE)[1:]
    return [
        f"{module}.{name}"
        for module, part in zip(modules[::2], modules[1::2], strict=True)
        for name in re.findall(r"^   (\w+)$", part, re.MULTILINE)
    ]


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_has_a_page(module):
    names = importlib.import_module(module).__all__
    listed = [name.rpartition(".") for name in names_in_reference()]
    modules = {name for name in names if f"{module}.{name}" in PUBLIC}
    assert sorted(name for place, _, name in listed if place == module) == sorted(
        {*names} - modules
    )


def test_every_page_is_in_a_table_of_contents():
    listed = {DOCS / "index.md"}
    for page, text in PAGES.items():
        for block in re.findall(r"^:::\{toctree\}\n(.*?)^:::$", text, re.MULTILINE | re.DOTALL):
            entries = [line for line in block.splitlines() if line and not line.startswith(":")]
            names = [re.sub(r".*<(.*)>", r"\1", entry) for entry in entries]
            listed |= {page.parent / f"{name}.md" for name in names}
    assert {*PAGES} - listed == set()


def test_the_page_of_a_command_has_its_example_and_all_its_flags(extension):
    command_pages = extension("command_pages")
    for name in app.COMMANDS:
        page, command = command_pages.page_of(name), app.command(name)
        assert all(line.strip() in page for line in command.example.splitlines()), name
        assert [f for f in command.flags() if f[0] == "-" and f not in page] == [], name


@pytest.mark.parametrize(
    ("code", "target"),
    [
        ("RankSVM", "marginrank.RankSVM"),
        ("metrics.ndcg", "marginrank.metrics.ndcg"),
        ("make_ranking()", "marginrank.make_ranking"),
        ("marginrank tune data.txt", "/reference/commands/tune"),
        ("docs/how_to/gpu.md", "/how_to/gpu"),
        ("model.fit", None),
        ("marginrank.io", None),
    ],
)
def test_code_leads_to_the_page_of_what_it_names(extension, code, target):
    found = extension("linked_names").target_of(code)
    assert (found and found["reftarget"]) == target


def make_site(folder, links):
    folder.mkdir()
    (folder / "other.html").write_text('<h1 id="here"></h1>')
    (folder / "index.html").write_text("".join(f'<a href="{link}"></a>' for link in links))
    return folder


def test_links_that_lead_nowhere_are_found(extension, tmp_path, capsys):
    check = extension("check_links").main
    good = ["other.html#here", "other.html", "#top", "https://example.org/nothing"]
    broken = ["other.html#there", "lost.png", "#lost"]
    assert check(make_site(tmp_path / "good", good)) == 0
    assert check(make_site(tmp_path / "broken", good + broken)) == 1
    shown = [line.split()[1] for line in capsys.readouterr().out.splitlines() if "nowhere" in line]
    assert shown == broken


def test_a_site_without_pages_does_not_pass(extension, tmp_path):
    assert extension("check_links").main(tmp_path) == 1
