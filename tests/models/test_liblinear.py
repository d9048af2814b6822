"""Model files of LIBLINEAR-ranksvm."""

import numpy as np
import pytest
from helpers.tables import each
from hypothesis import given
from hypothesis import strategies as st

from marginrank import RankSVM, load_model

HEADER = "solver_type L2R_L2LOSS_RANKSVM\nnr_class 2\nnr_feature 3\nbias -1\nw\n"
MODEL = HEADER + "0.1 \n-2.5 \n1.234567890123457e-05 \n"


def load(folder, text):
    (folder / "m").write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_model(folder / "m")


def with_coef(coef):
    model = RankSVM()
    model.coef_ = np.array(coef, dtype=np.float64)
    model.n_features_in_ = model.coef_.size
    return model


def test_a_file_of_liblinear(tmp_path):
    model = load(tmp_path, MODEL)
    assert isinstance(model, RankSVM)
    np.testing.assert_array_equal(model.coef_, [0.1, -2.5, 1.234567890123457e-05])
    assert model.n_features_in_ == 3
    np.testing.assert_array_equal(model.predict([[1.0, 2.0, 0.0]]), [0.1 - 5.0])


def test_written_as_liblinear_writes(tmp_path):
    with_coef([0.1, -2.5, 1.234567890123457e-05]).save(tmp_path / "m", format="liblinear")
    assert (tmp_path / "m").read_text() == MODEL


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_weights_are_exact(tmp_path_factory, coef):
    path = tmp_path_factory.mktemp("model") / "m"
    with_coef(coef).save(path, format="liblinear")
    assert load_model(path).coef_.tobytes() == np.array(coef).tobytes()


@given(st.lists(st.floats(-1e300, 1e300), min_size=1))
def test_a_file_of_liblinear_is_written_back_byte_by_byte(tmp_path_factory, coef):
    path = tmp_path_factory.mktemp("model") / "m"
    text = HEADER.replace("3", str(len(coef))) + "".join(f"{w:.16g} \n" for w in coef)
    path.write_text(text)
    load_model(path).save(path, format="liblinear")
    assert path.read_text() == text


@pytest.mark.parametrize(
    "text",
    [
        MODEL.replace("\n", "\r\n"),
        MODEL + "\n\n",
        MODEL.rstrip(),
        MODEL.replace("bias -1", "bias -1.0"),
        MODEL.replace("nr_class 2\nnr_feature 3", "nr_feature 3\nnr_class 2"),
        MODEL.replace("0.1 ", "+1.e-1"),
    ],
    ids=["CRLF", "blank lines", "no last newline", "real bias", "other order", "other spelling"],
)
def test_harmless_variants_are_read(tmp_path, text):
    np.testing.assert_array_equal(load(tmp_path, text).coef_[:2], [0.1, -2.5])


MALFORMED = {
    "classifier": (MODEL.replace("RANKSVM", "SVC"), r":1: solver_type is 'L2R_L2LOSS_SVC'"),
    "nr_class": (MODEL.replace("nr_class 2", "nr_class 3"), r":2: nr_class is '3' and must be 2"),
    "bias": (MODEL.replace("bias -1", "bias 1"), r":4: bias is 1.* train without -B"),
    "zero bias": (MODEL.replace("bias -1", "bias 0"), r":4: bias is 0"),
    "no bias": (MODEL.replace("bias -1\n", ""), r":4: w comes before bias"),
    "word as bias": (MODEL.replace("bias -1", "bias no"), r":4: bias is 'no' and must be a finite"),
    "label": (MODEL.replace("nr_class 2", "label 1 -1"), r":2: 'label 1 -1' is not a field"),
    "field twice": (MODEL.replace("nr_class 2", "nr_class 2\nnr_class 2"), r":3: .* twice"),
    "nr_feature": (MODEL.replace("nr_feature 3", "nr_feature x"), r":3: nr_feature is 'x'"),
    "no features": (MODEL.replace("nr_feature 3", "nr_feature 0"), r":3: nr_feature is '0'"),
    "huge nr_feature": (
        MODEL.replace("nr_feature 3", "nr_feature 999999999999"),
        r":9: the file ends before weight 4 of 999999999999",
    ),
    "few weights": (MODEL.replace("-2.5 \n", ""), r":8: the file ends before weight 3 of 3"),
    "many weights": (MODEL + "4 \n", r":9: '4' comes after the 3 weights"),
    "word as weight": (MODEL.replace("-2.5", "two"), r":7: weight 2 is 'two' and must be a finite"),
    "NaN": (MODEL.replace("-2.5", "nan"), r":7: weight 2 is 'nan'"),
    "infinity": (MODEL.replace("-2.5", "1e999"), r":7: weight 2 is '1e999'"),
    "underscore": (MODEL.replace("-2.5", "1_0"), r":7: weight 2 is '1_0'"),
    "foreign digits": (MODEL.replace("-2.5", "٣"), r":7: weight 2 is "),
    "two on a line": (MODEL.replace("-2.5", "-2.5 3"), r":7: weight 2 is '-2.5 3'"),
    "blank line": (MODEL.replace("-2.5", "\n-2.5"), r":7: weight 2 is ''"),
    "bytes": (MODEL.encode().replace(b"-2.5", b"\xff\x00"), r":7: weight 2 is "),
    "header only": ("solver_type L2R_L2LOSS_RANKSVM\n", r":2: the file ends before w"),
}


@each(("text", "message"), MALFORMED.values())
def test_malformed_lines_are_named(tmp_path, text, message):
    with pytest.raises(ValueError, match=r"/m" + message):
        load(tmp_path, text)
