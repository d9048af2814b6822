"""Results of fits, commands and exports are bit for bit those that ``record.py`` recorded.

The last bits depend on the machine: the kernels compute with one instruction set here, but BLAS,
NumPy and PyTorch have others. Where these are not those of the recording, numbers are compared to
a relative difference of 1e-6 instead (objectives: 1e-9), and histories of iterations are not.
"""

import json
import re

import cases
import pytest
import record

pytestmark = pytest.mark.filterwarnings("ignore")  # some fits stop early, on purpose

# Names that changed since the recording, wherever they are keys: old name → new name.
RENAMED = {}
# Of these, those that are parameters of learners, whose names have other meanings elsewhere.
RENAMED_PARAMETERS = {
    "categorical": "categorical_features",
    "l1": "group_l1",
    "monotone": "monotonic_cst",
}
LOOSE = 1e-6
OBJECTIVE = 1e-9
CHANGING = ("history", "gap", "gap_", "n_iter", "n_iter_", "hash", "file", "text", "verification")


@pytest.fixture(scope="module")
def golden():
    return renamed(json.loads(record.GOLDEN.read_text()))


@pytest.fixture(autouse=True, scope="module")
def same_arithmetic():
    with record.fixed_arithmetic():
        yield


@pytest.mark.parametrize("case", cases.FITS, ids=lambda case: case.name)
def test_fits(golden, case):
    compare(golden, golden["fits"][case.name], record.record_fit(case))


@pytest.mark.parametrize("case", cases.FUNCTIONS, ids=lambda case: case[0])
def test_functions(golden, case):
    compare(golden, golden["functions"][case[0]], record.record_function(case))


def test_commands(golden, tmp_path):
    printed, files = record.record_commands(tmp_path)
    # A renamed flag changes the command, never its place in the list.
    compare(golden, [*golden["commands"].values()], [*printed.values()])
    compare(golden, golden["files"], files)


@pytest.mark.parametrize("name", cases.EXPORTS)
def test_exports(golden, name):
    found = record.record_exports(name)
    if record.machine() == golden["machine"]:
        assert found == golden["exports"][name]
    else:  # texts whose numbers end in other digits
        expected = golden["exports"][name]
        assert {to: [*files] for to, files in found.items()} == {
            to: [*files] for to, files in expected.items()
        }


def test_every_recorded_case_is_compared(golden):
    assert [*golden["fits"]] == [case.name for case in cases.FITS]
    assert [*golden["functions"]] == [case[0] for case in cases.FUNCTIONS]
    assert len(golden["commands"]) == len(cases.COMMANDS)
    assert {name: [*of] for name, of in golden["exports"].items()} == cases.EXPORTS


def renamed(value):
    if isinstance(value, dict):
        value = {RENAMED.get(key, key): renamed(v) for key, v in value.items()}
        if isinstance(value.get("parameters"), dict):
            value["parameters"] = renamed_parameters(value["parameters"])
        return value
    if isinstance(value, list):
        return [renamed(v) for v in value]
    if isinstance(value, str) and value.startswith("{"):  # the text of a file
        for old, new in RENAMED.items():
            value = value.replace(f'"{old}":', f'"{new}":')
        value = re.sub(r'(?<="parameters": ){.*}', parameters_text, value)
    return value


def renamed_parameters(parameters):
    new = {RENAMED_PARAMETERS.get(name, name): value for name, value in parameters.items()}
    return dict(sorted(new.items()))


def parameters_text(match):
    return json.dumps(renamed_parameters(json.loads(match.group())))


def compare(golden, expected, found):
    """Fail if two records differ, bit for bit or, on another machine, by more than rounding."""
    found = json.loads(json.dumps(found))
    for path, was, now in differences(expected, found):
        if record.machine() == golden["machine"]:
            pytest.fail(f"{path} was {was!r} and is {now!r}")
        if not any(part in CHANGING for part in path.split("/")):
            tolerance = OBJECTIVE if "objective" in path else LOOSE
            where = f"{path}, on a machine unlike {golden['machine']}"
            assert now == pytest.approx(was, rel=tolerance, abs=LOOSE), where


def differences(was, now, path=""):
    """Yield where two JSON values differ, to the bit: 0.0 is not -0.0, and nan is nan."""
    if isinstance(was, dict) and isinstance(now, dict):
        if [*was] != [*now]:
            yield path, [*was], [*now]
        for key in was.keys() & now.keys():
            yield from differences(was[key], now[key], f"{path}/{key}")
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for k, (a, b) in enumerate(zip(was, now, strict=True)):
            yield from differences(a, b, f"{path}/{k}")
    elif json.dumps(was) != json.dumps(now):
        yield path, was, now
