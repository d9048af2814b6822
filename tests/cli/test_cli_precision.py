"""Digits of text survive marginrank convert."""

import json

import numpy as np
import pytest

from marginrank import RankingData, load_letor
from marginrank.io.letor import float32_holds

SHORT = "2 qid:1 1:0.1 2:123456 3:1e-5\n0 qid:1 1:-0.337 2:16777216 3:0.999999\n"
LONG = "2 qid:1 1:0.1 2:123456789\n0 qid:1 1:0.123456789 2:16777217\n"


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("name", ["out.store", "out.parquet"])
@pytest.mark.parametrize(("text", "dtype"), [(SHORT, "float32"), (LONG, "float64")])
def test_the_smallest_type_that_holds_all_digits(invoke, tmp_path, text, dtype, name, layout):
    source, out, again = tmp_path / "in.txt", tmp_path / name, tmp_path / "again.txt"
    source.write_text(text)
    done = invoke("convert", source, out, "--layout", layout, "--json")
    assert json.loads(done.stdout)["dtype"] == dtype
    assert ("pass --dtype float32 to round them" in done.stderr) == (dtype == "float64")
    assert invoke("convert", out, again).returncode == 0
    expected = load_letor(source, dtype="float64", layout="dense").X
    np.testing.assert_array_equal(load_letor(again, dtype="float64", layout="dense").X, expected)


@pytest.mark.parametrize("name", ["out.txt", "out.csv", "out.tsv", "out.txt.gz"])
@pytest.mark.parametrize(
    "value", ["123456789", "0.1", "463084.875", "1e300", "0.30000000000000004"]
)
def test_text_is_written_with_the_digits_it_had(invoke, tmp_path, name, value):
    (tmp_path / "in.txt").write_text(f"1 qid:1 1:{value}\n0 qid:1 1:2\n")
    assert invoke("convert", tmp_path / "in.txt", tmp_path / name).returncode == 0
    assert invoke("convert", tmp_path / name, tmp_path / "again.store").returncode == 0
    stored = RankingData.open(tmp_path / "again.store").X[0, 0]
    assert float(value) in (float(stored), float(str(stored)))
    if name == "out.txt":
        written = (tmp_path / name).read_text().split()[2].removeprefix("1:")
        assert float(written) == float(value)


def test_a_type_that_is_given_is_used(invoke, tmp_path):
    (tmp_path / "in.txt").write_text(LONG)
    for dtype in ("float32", "float64"):
        out = tmp_path / f"{dtype}.store"
        invoke("convert", tmp_path / "in.txt", out, "--dtype", dtype)
        assert RankingData.open(out).X.dtype == dtype


def test_float32_holds_what_its_shortest_decimals_say():
    generator = np.random.default_rng(0)
    for digits in range(1, 12):
        for exponent in (-9, -3, 0, 4, 8):
            mantissas = generator.uniform(1, 9.9, size=40)
            values = np.array([float(f"{m:.{digits - 1}f}e{exponent}") for m in mantissas])
            nearest = values.astype(np.float32)
            held = [float(str(v)) for v in nearest] == values
            expected = held | (nearest == values)
            assert [float32_holds(values[k : k + 1]) for k in range(40)] == expected.tolist()
            assert float32_holds(values) == expected.all()


@pytest.mark.parametrize("value", [1e-50, 1e300, -1e39, 2.0**53 - 1])
def test_float32_does_not_hold_everything(value):
    assert not float32_holds(np.array([0.5, value]))


def test_shortest_decimals_of_float32_are_held():
    values = np.random.default_rng(0).standard_normal(2000).astype(np.float32)
    assert float32_holds(np.array([0.0, *(float(str(v)) for v in values)]))
    assert float32_holds(values.astype(np.float64))
