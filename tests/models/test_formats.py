"""Choosing a format of model files."""

import pickle

import numpy as np
import pytest

from marginrank import (
    AdditiveRankSVM,
    KernelRankSVM,
    LinearScorer,
    RankSVM,
    load_model,
    make_ranking,
)
from marginrank.models.formats import FORMATS as KNOWN

FORMATS = [name for name, format in KNOWN.items() if format.write is not None]


@pytest.fixture(scope="module")
def model():
    return RankSVM().fit([[0.0, 1.0], [1.0, 0.5], [2.0, 2.0]], [0, 1, 2])


@pytest.mark.parametrize("format", FORMATS)
def test_files_are_recognised(tmp_path, model, format):
    model.save(tmp_path / "m", format=format)
    for loaded in (load_model(tmp_path / "m"), load_model(tmp_path / "m", format=format)):
        np.testing.assert_array_equal(loaded.coef_, model.coef_)


@pytest.mark.parametrize("format", FORMATS)
def test_a_byte_order_mark_does_no_harm(tmp_path, model, format):
    model.save(tmp_path / "m", format=format)
    (tmp_path / "m").write_bytes(b"\xef\xbb\xbf" + (tmp_path / "m").read_bytes())
    np.testing.assert_array_equal(load_model(str(tmp_path / "m")).coef_, model.coef_)


def test_json_is_the_default(tmp_path, model):
    model.save(str(tmp_path / "m.model"))
    assert (tmp_path / "m.model").read_bytes().startswith(b"{")


@pytest.mark.parametrize("format", ["JSON", "svmlight", ""])
def test_unknown_names_are_refused(tmp_path, model, format):
    for call in (model.save, load_model):
        with pytest.raises(ValueError, match=f"format={format!r} must be one of.*'liblinear'"):
            call(tmp_path / "m", format=format)


@pytest.mark.parametrize("content", [b"", b"\n", b"2 qid:1 1:0.5\n", b"PAR1", b"## Coordinate"])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(ValueError, match="m is not a model file"):
        load_model(tmp_path / "m")


def test_pickles_are_never_loaded(tmp_path, model):
    (tmp_path / "m").write_bytes(pickle.dumps(model))
    with pytest.raises(ValueError, match=r"pickles are never loaded.*model\.save"):
        load_model(tmp_path / "m")


@pytest.mark.parametrize(("written", "read"), [(w, r) for w in FORMATS for r in FORMATS if w != r])
def test_a_file_of_another_format_than_said_is_refused(tmp_path, model, written, read):
    model.save(tmp_path / "m", format=written)
    with pytest.raises(ValueError, match=r"/m(:1:| is damaged)"):
        load_model(tmp_path / "m", format=read)


def test_a_missing_file_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "m")
    with pytest.raises(IsADirectoryError):
        load_model(tmp_path)


def test_from_format_to_format(tmp_path, model):
    model.save(tmp_path / "a", format="svmrank")
    load_model(tmp_path / "a").save(tmp_path / "b", format="liblinear")
    load_model(tmp_path / "b").save(tmp_path / "c")
    back = load_model(tmp_path / "c")
    np.testing.assert_array_equal(back.coef_, model.coef_)
    assert not hasattr(back, "objective_")
    assert back.get_params() == RankSVM().get_params()


def test_models_without_weights_are_told_from_damaged_ones(tmp_path):
    X, y, qid = make_ranking(5, 5, 2, random_state=0)
    for kind, estimator in (("an additive", AdditiveRankSVM()), ("a kernel", KernelRankSVM())):
        path = tmp_path / "model"
        estimator.fit(X, y, qid=qid).save(path)
        with pytest.raises(ValueError, match=f"is {kind} model"):
            LinearScorer.load(path)
        assert type(load_model(path)) is type(estimator)
