"""The stub of the native module names what the module has."""

import ast
import re
from importlib.resources import files

from helpers.tables import each

from marginrank import _core

STUB = ast.parse(files("marginrank").joinpath("_core.pyi").read_text()).body


def test_stub_names_everything_public():
    declared = {n.name for n in STUB if isinstance(n, ast.ClassDef | ast.FunctionDef)}
    assert declared == {name for name in dir(_core) if not name.startswith("_")}
    for node in STUB:
        if isinstance(node, ast.ClassDef):
            methods = {m.name for m in node.body if isinstance(m, ast.FunctionDef)} - {"__init__"}
            public = {m for m in dir(getattr(_core, node.name)) if not m.startswith("_")}
            assert methods == public


def declared_functions():
    """Name the functions of the stub, together with their declarations."""
    for node in STUB:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, ast.FunctionDef) and not is_property(member):
                    yield f"{node.name}.{member.name}", member


def is_property(function):
    """Tell whether a declaration is one of a property, or of its setter."""
    marks = {d.id if isinstance(d, ast.Name) else d.attr for d in function.decorator_list}
    return bool(marks & {"property", "setter"})


def native_function(path):
    owner, _, name = path.rpartition(".")
    if not owner:
        return getattr(_core, name)
    members = vars(getattr(_core, owner))
    # What makes an object of a class is one or the other.
    return members.get(name) or members["__new__"]


def native_declaration(function):
    """Return what the module itself says about a function, without the types of its arguments."""
    text, *_ = function.__nb_signature__[-1]
    while "[" in text:
        text = re.sub(r"\[[^][]*\]", "", text)
    return ast.parse(re.sub(r"\\\d+", "0", text) + ": ...").body[0]


def arguments(declaration):
    """Return the names of the arguments: those by position or name, and those by name alone."""
    names = [a.arg for a in declaration.args.args if a.arg not in ("self", "cls")]
    return names, [a.arg for a in declaration.args.kwonlyargs]


FUNCTIONS = dict(declared_functions())


@each("path", FUNCTIONS)
def test_stub_names_the_arguments(path):
    assert arguments(FUNCTIONS[path]) == arguments(native_declaration(native_function(path)))
