"""Print every message that a user of the package can see, for a reader who checks the wording.

    python tests/helpers/messages.py [--draw 40] [--seed 0] [--docstrings]

Messages are found in the source: the arguments of raised exceptions, warnings, `Message`, the help
of parameters and flags, and the text of commands. Values that are filled in are shown as {…}; the
parts of a message with mentions of parameters are joined. Templates of exported code are left out.
--docstrings prints the docstrings of public names instead; --draw prints a random part of the list.
"""

import argparse
import ast
import random
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "marginrank"
SHORTEST = 3  # words; less is a name or a unit
JOINED = {"Message", "ParameterError"}  # calls whose arguments are parts of one message


def messages() -> Iterator[tuple[str, str]]:
    """Yield where each message stands, and its text."""
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documented = {id(node) for node in docstring_nodes(tree)}
        inside = {id(part) for node in ast.walk(tree) for part in parts_of(node)}
        for node in ast.walk(tree):
            if id(node) in documented | inside:
                continue
            text = text_of(node)
            is_template = text is not None and "\n" in text and "export" in path.parts
            if text is not None and not is_template and len(text.split()) >= SHORTEST:
                yield f"{path.relative_to(PACKAGE.parent)}:{node.lineno}", text


def text_of(node: ast.AST) -> str | None:
    """Return the text of a string, an f-string or a message of several parts, or None."""
    if is_joined(node):
        return "".join(text_of(part) or "{" + ast.unparse(part) + "}" for part in node.args)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else "{" + field(part) + "}"
            for part in node.values
        )
    return None


def field(part: ast.AST) -> str:
    return ast.unparse(part.value) if isinstance(part, ast.FormattedValue) else "…"


def is_joined(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") in JOINED


def parts_of(node: ast.AST) -> list[ast.AST]:
    """Return the strings that an f-string or a message consists of."""
    return [*ast.walk(node)][1:] if isinstance(node, ast.JoinedStr) or is_joined(node) else []


def docstring_nodes(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the constants that are docstrings."""
    for node in ast.walk(tree):
        if ast_has_docstring(node):
            yield node.body[0].value


def ast_has_docstring(node: ast.AST) -> bool:
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef
    return isinstance(node, kinds) and ast.get_docstring(node) is not None


def docstrings() -> Iterator[tuple[str, str]]:
    """Yield the docstrings of names without an underscore, and where they stand."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if ast_has_docstring(node) and not getattr(node, "name", "module").startswith("_"):
                line = getattr(node, "lineno", 1)
                yield f"{path.relative_to(PACKAGE.parent)}:{line}", ast.get_docstring(node)


def main() -> None:
    """Print the list, or a random part of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draw", type=int, help="print this many, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--docstrings", action="store_true", help="print docstrings instead")
    arguments = parser.parse_args()
    found = list(docstrings() if arguments.docstrings else messages())
    if arguments.draw is not None:
        found = random.Random(arguments.seed).sample(found, min(arguments.draw, len(found)))
    for place, text in found:
        print(f"{place}\n    " + text.replace("\n", "\n    "))


if __name__ == "__main__":
    main()
