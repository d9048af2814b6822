"""One page per command of marginrank, written from the help of the command."""

import re
from contextlib import contextmanager
from pathlib import Path

import typer

from marginrank.cli import app as cli

TABLE = ".. list-table::\n   :widths: 35 65\n"


class Sections:
    """Formatter of the help of a command: rows of two columns, or text, under headings."""

    def __init__(self):
        self.parts = {}

    @contextmanager
    def section(self, heading):
        self.current = self.parts.setdefault(heading, [])
        yield

    def write_dl(self, rows):
        self.current.append(table_of(rows))

    def write(self, text):
        self.current.append(literal_block(text, "bash"))


def write_pages(app):
    """Write reference/commands/: a page per command and the list of all commands."""
    folder = Path(app.srcdir, "reference", "commands")
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.rst"):
        if path.stem not in {*cli.COMMANDS, "index"}:
            path.unlink()  # of an earlier version
    pages = {name: page_of(name) for name in cli.COMMANDS} | {"index": list_of_commands()}
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:  # else it is not new
            path.write_text(text, encoding="utf-8")


def list_of_commands():
    """Return the page that lists all commands, in the groups of --help."""
    parts = [
        heading("Commands", "="),
        "The extra ``cli`` installs the program ``marginrank``. ``--help`` prints the text of "
        "these pages. What all commands have in common: :doc:`../command_line`.\n",
    ]
    for group, commands in cli.GROUPS.items():
        rows = [(name, str(kind.__doc__).partition("\n")[0]) for name, kind in commands.items()]
        parts += [heading(group, "-"), TABLE]
        parts += [f"   * - :doc:`{name}`\n     - {escape(text)}" for name, text in rows]
        parts.append("")
    names = "\n".join(f"   {name}" for name in cli.COMMANDS)
    return "\n".join([*parts, f".. toctree::\n   :hidden:\n\n{names}\n"])


def page_of(name):
    """Return the page of a command: what it does, how to call it, an example and its flags."""
    command = cli.command(name)
    context = typer.Context(command, info_name=f"marginrank {name}")
    usage = " ".join([context.info_name, *command.collect_usage_pieces(context)])
    written = Sections()
    command.format_options(context, written)
    return "\n".join(
        [
            heading(name, "="),
            escape(command.help),
            "",
            literal_block(usage, "text"),
            *(heading(title, "-") + "\n".join(part) for title, part in written.parts.items()),
        ]
    )


def heading(text, line):
    return f"{text}\n{line * len(text)}\n\n"


def table_of(rows):
    cells = [f"   * - ``{flag}``\n     - {escape(text)}" for flag, text in rows]
    return "\n".join([TABLE, *cells, ""])


def literal_block(text, language):
    indented = re.sub(r"^ *(?=\S)", "   ", text, flags=re.MULTILINE)
    return f".. code-block:: {language}\n\n{indented}\n"


def escape(text):
    return re.sub(r"([\\*`_|])", r"\\\1", text)


def setup(app):
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True}
