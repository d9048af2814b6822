"""The stub of the native module names what the module has."""

import ast
from importlib.resources import files

from marginrank import _core


def test_stub_names_everything_public():
    tree = ast.parse(files("marginrank").joinpath("_core.pyi").read_text())
    declared = {n.name for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef)}
    assert declared == {name for name in dir(_core) if not name.startswith("_")}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            methods = {m.name for m in node.body if isinstance(m, ast.FunctionDef)} - {"__init__"}
            public = {m for m in dir(getattr(_core, node.name)) if not m.startswith("_")}
            assert methods == public
