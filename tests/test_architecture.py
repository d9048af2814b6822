"""The shape of the source tree: what may import what, and how long things may be.

The picture of the layers is in docs/understand/architecture.md. Imports count wherever they stand:
at the top of a module, inside a function, or for type checkers only.
"""

import ast
import subprocess
import sys
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

import marginrank

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "marginrank"

# A part of the package, and the other parts that its modules may import.
ALLOWED_IMPORTS = {
    "_core":      "",
    "_utils":     "_core",
    "data":       "_core _utils",
    "models":     "_core _utils data",
    "io":         "_core _utils data",
    "clicks":     "_utils data io",
    "objective":  "_core _utils data",
    "operators":  "_core _utils data objective",
    "solvers":    "_core _utils models objective",
    "metrics":    "_core _utils data objective",
    "health":     "_utils data metrics",
    "fit":        "_core _utils data models objective operators solvers metrics",
    "selection":  "_core _utils data models objective operators solvers metrics fit",
    "additive":   "_core _utils data models objective operators solvers metrics fit selection",
    "export":     "_utils metrics models",
    "estimators": "_core _utils data models io objective solvers metrics fit selection additive "
                  "export",
    "dask":       "_core _utils data models io objective operators solvers metrics fit export "
                  "estimators",
    "reporting":  "_utils data models metrics health fit selection",
    "plots":      "_core _utils data models objective solvers metrics fit selection",
    "cli":        "_core _utils data models io clicks objective solvers metrics health fit "
                  "selection additive export dask plots reporting",
    "__main__":   "cli",
    # The public names:
    "__init__":   "_utils data clicks models io metrics health selection estimators reporting",
}  # fmt: skip

MODULES_AT_THE_TOP = 2  # __init__ and __main__
LINES_OF_A_MODULE = 450
LINES_OF_A_CPP_FILE = 350
LINES_OF_A_FUNCTION = 60
PARAMETERS_OF_A_FUNCTION = 12
MODULES_OF_A_FIT = 25
MODULES_OF_SERVING = 40

# Public functions that take parameters one by one, as make_classification and enet_path of
# scikit-learn do. So do the constructors of estimators, and of data with one array per column.
MANY_PARAMETERS = {
    "marginrank.data.ranking_data.RankingData.__init__",
    "marginrank.data.synthetic.make_ranking",
    "marginrank.selection.paths.linear_path",
    "marginrank.selection.paths.sparse_path",
}


def module_name(path):
    """Return the dotted name of a source file; a package has that of its folder."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def tree_of(module):
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


@cache
def public_names():
    """Return where the names come from that `from marginrank import …` gives."""
    imports = [node for node in ast.walk(tree_of("marginrank")) if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module for node in imports for alias in node.names}


def imported_module(module, name):
    """Return the module that `from module import name` needs."""
    inner = f"{module}.{name}"
    if inner in MODULES or inner == "marginrank._core":
        return inner
    return public_names().get(name, module) if module == "marginrank" else module


@cache
def imports_of(module):
    """Return the modules that a module imports, each with a line where it does."""
    found = {}
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name: node.lineno for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno} has a relative import"
            found |= {imported_module(node.module, a.name): node.lineno for a in node.names}
    return found


def package_of(module):
    return module.partition(".")[0]


def part_of(module):
    """Return the part of marginrank that a module, or what it defines, belongs to."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def modules_of(part):
    return [module for module in MODULES if part_of(module) == part]


def reachable_from(module):
    """Return the modules of marginrank that a module imports, directly or through others."""
    found, waiting = set(), [module]
    while waiting:
        new = (imports_of(waiting.pop()).keys() & MODULES.keys()) - found
        found |= new
        waiting.extend(new)
    return found


def functions_of(module):
    """Yield the functions of a module, each with its dotted name."""

    def walk(node, name):
        for child in ast.iter_child_nodes(node):
            inner = f"{name}.{child.name}" if hasattr(child, "name") else name
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield inner, child
            yield from walk(child, inner)

    return walk(tree_of(module), module)


@cache
def all_functions():
    return list(chain.from_iterable(map(functions_of, MODULES)))


def none_of(found):
    """Fail with a line for each thing found, which pytest would cut off."""
    found = sorted(found)
    assert not found, "\n" + "\n".join(found)


def test_every_part_is_in_the_table_after_what_it_imports():
    assert {part_of(module) for module in MODULES} | {"_core"} == ALLOWED_IMPORTS.keys()
    before = set()
    for part, allowed in ALLOWED_IMPORTS.items():
        assert set(allowed.split()) <= before, part
        before.add(part)


@pytest.mark.parametrize("part", ALLOWED_IMPORTS)
def test_imports_go_one_way(part):
    allowed = {part, *ALLOWED_IMPORTS[part].split()}
    none_of(
        f"{module}:{line} imports {imported}"
        for module in modules_of(part)
        for imported, line in imports_of(module).items()
        if package_of(imported) == "marginrank" and part_of(imported) not in allowed
    )


def test_no_modules_import_each_other():
    reach = {module: reachable_from(module) for module in MODULES}
    none_of(
        {
            " ↔ ".join(sorted(other for other in reach[module] if module in reach[other]))
            for module in MODULES
            if module in reach[module]
        }
    )


def is_private_to_another(module, imported):
    """Whether an import is of an underscore module of a folder that the importer is not in."""
    folders = imported.split(".")
    private = [k for k, name in enumerate(folders) if name.startswith("_")]
    shared = imported.startswith(("marginrank._core", "marginrank._utils"))
    return (
        imported in MODULES
        and not shared
        and any(not module.startswith(".".join(folders[:k]) + ".") for k in private)
    )


def test_modules_with_an_underscore_are_of_one_folder():
    none_of(
        f"{module}:{line} imports {imported}"
        for module in MODULES
        for imported, line in imports_of(module).items()
        if is_private_to_another(module, imported)
    )


def test_class_names_are_unique():
    names = {}
    for module in MODULES:
        for node in ast.walk(tree_of(module)):
            if isinstance(node, ast.ClassDef):
                names.setdefault(node.name, []).append(f"{module}:{node.lineno}")
    none_of(f"{name}: {', '.join(places)}" for name, places in names.items() if len(places) > 1)


def test_the_command_line_does_without_scikit_learn():
    none_of(
        f"{module}:{line} imports {imported}"
        for module in modules_of("cli")
        for imported, line in imports_of(module).items()
        if package_of(imported) == "sklearn"
    )


def test_names_are_imported_from_where_type_checkers_look_for_them():
    modules = {"metrics": "marginrank"} | marginrank._MODULES
    assert {name: public_names()[name] for name in marginrank.__all__} == modules


def test_the_top_of_the_package_has_few_modules():
    assert len(list(PACKAGE.glob("*.py"))) <= MODULES_AT_THE_TOP


def test_the_documentation_has_a_line_for_every_folder():
    text = (ROOT / "docs" / "understand" / "architecture.md").read_text(encoding="utf-8")
    packages = [path.parent.relative_to(ROOT) for path in PACKAGE.glob("*/__init__.py")]
    none_of(f"{package} is missing" for package in packages if f"\n| `{package}/` |" not in text)


def longer_than(limit, paths):
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in paths}
    return [f"{path.relative_to(ROOT)} has {n} lines" for path, n in lengths.items() if n > limit]


def test_modules_are_short():
    none_of(longer_than(LINES_OF_A_MODULE, MODULES.values()))


def test_cpp_files_are_short():
    files = [path for path in (ROOT / "core").rglob("*") if path.suffix in {".cpp", ".hpp"}]
    assert files
    none_of(longer_than(LINES_OF_A_CPP_FILE, files))


def length_of(function):
    """Return the lines of a function from `def` on, without its docstring."""
    lines = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function, clean=False) is not None:
        text = function.body[0]
        lines -= text.end_lineno - text.lineno + 1
    return lines


def test_functions_are_short():
    lengths = {name: length_of(function) for name, function in all_functions()}
    none_of(f"{name} has {n} lines" for name, n in lengths.items() if n > LINES_OF_A_FUNCTION)


def count_parameters(function):
    """Return the number of parameters that a caller gives."""
    given = function.args
    names = [given.vararg, given.kwarg, *given.posonlyargs, *given.args, *given.kwonlyargs]
    return sum(name is not None and name.arg not in {"self", "cls"} for name in names)


def has_arguments_by_convention(name):
    """Whether scikit-learn, LightGBM and XGBoost say what the arguments are."""
    return part_of(name) in ("estimators", "dask") and name.endswith((".__init__", ".fit"))


def is_kernel(function):
    """Whether it is a Triton kernel, which takes each pointer and each size by itself."""
    return any(ast.unparse(decorator) == "triton.jit" for decorator in function.decorator_list)


def test_functions_have_few_parameters():
    counts = {name: count_parameters(f) for name, f in all_functions() if not is_kernel(f)}
    many = {name for name, n in counts.items() if n > PARAMETERS_OF_A_FUNCTION}
    assert many >= MANY_PARAMETERS, "the list of exceptions has one that is none"
    none_of(
        f"{name} has {counts[name]} parameters"
        for name in many - MANY_PARAMETERS
        if not has_arguments_by_convention(name)
    )


TRACED_FIT = """
import sys
from collections import Counter
from marginrank import RankSVM, make_ranking

X, y, qid = make_ranking(n_queries=30, docs_per_query=20, random_state=0)
RankSVM().fit(X, y, qid=qid)  # whatever is imported late is imported now
files, checks = set(), Counter()

def trace(frame, event, _):
    code = frame.f_code
    if event != "call" or "/marginrank/" not in code.co_filename:
        return
    files.add(code.co_filename)
    if code.co_name.startswith("check_") and code.co_filename.endswith("/parameters.py"):
        checks[code.co_name, str(frame.f_locals.get("name"))] += 1

sys.setprofile(trace)
RankSVM().fit(X, y, qid=qid)
sys.setprofile(None)
print(sorted(files))
print(dict(checks))
"""


def test_a_fit_passes_through_few_modules_and_checks_each_parameter_once():
    done = subprocess.run(
        [sys.executable, "-c", TRACED_FIT], capture_output=True, text=True, check=True
    )
    files, checks = map(ast.literal_eval, done.stdout.splitlines())
    assert len(files) <= MODULES_OF_A_FIT, "\n" + "\n".join(files)
    assert {name for _, name in checks} >= {"C", "loss", "solver", "tol", "max_iter"}
    none_of(f"{name} is called {n} times" for name, n in checks.items() if n > 1)


def test_the_serving_class_imports_few_modules():
    code = (
        "import sys, marginrank.models.serving; "
        "print([name for name in sys.modules if name.startswith('marginrank')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = ast.literal_eval(done.stdout)
    assert len(loaded) <= MODULES_OF_SERVING, "\n" + "\n".join(sorted(loaded))
    assert "sklearn" not in done.stdout
