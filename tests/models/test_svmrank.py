"""Model files of SVM^rank and SVM-light."""

import numpy as np
import pytest
from helpers.tables import each
from hypothesis import given
from hypothesis import strategies as st

from marginrank import RankSVM, load_model

HEADER = (
    "SVM-light Version V6.20\n"
    "0 # kernel type\n"
    "3 # kernel parameter -d \n"
    "1 # kernel parameter -g \n"
    "1 # kernel parameter -s \n"
    "1 # kernel parameter -r \n"
    "empty# kernel parameter -u \n"
    "6 # highest feature index \n"
    "0 # number of training documents \n"
    "2 # number of support vectors plus 1 \n"
    "0 # threshold b, each following line is a SV (starting with alpha*y)\n"
)
MODEL = HEADER + "1 1:1.9970672 2:-3.0596602 4:0.85808605 #\n"
SEVERAL = HEADER.replace("2 # number of sup", "4 # number of sup").replace("0 # thr", "-1.5 # thr")
SEVERAL += "0.5 1:2 3:4 #a comment: 1\n-2 3:1 6:0.25 #\n1e-1 #\n"


def load(folder, text):
    (folder / "m").write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_model(folder / "m")


def with_coef(coef):
    model = RankSVM()
    model.coef_ = np.array(coef, dtype=np.float64)
    model.n_features_in_ = model.coef_.size
    return model


def test_a_file_of_svmrank(tmp_path):
    model = load(tmp_path, MODEL)
    np.testing.assert_array_equal(model.coef_, [1.9970672, -3.0596602, 0, 0.85808605, 0, 0])
    assert model.n_features_in_ == 6


def test_support_vectors_are_summed(tmp_path):
    np.testing.assert_array_equal(load(tmp_path, SEVERAL).coef_, [1, 0, 0, 0, 0, -0.5])


def test_written_as_svmrank_writes(tmp_path):
    load(tmp_path, MODEL).save(tmp_path / "back", format="svmrank")
    assert (tmp_path / "back").read_text() == MODEL


def test_no_weight_at_all(tmp_path):
    with_coef(np.zeros(6)).save(tmp_path / "m", format="svmrank")
    assert (tmp_path / "m").read_text() == HEADER + "1 #\n"
    np.testing.assert_array_equal(load_model(tmp_path / "m").coef_, np.zeros(6))


def test_no_support_vector_at_all(tmp_path):
    text = HEADER.replace("2 # number of sup", "1 # number of sup")
    np.testing.assert_array_equal(load(tmp_path, text).coef_, np.zeros(6))


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_weights_are_exact(tmp_path_factory, coef):
    path = tmp_path_factory.mktemp("model") / "m"
    with_coef(coef).save(path, format="svmrank")
    np.testing.assert_array_equal(load_model(path).coef_, coef)


@pytest.mark.parametrize(
    "text",
    [
        MODEL.replace("\n", "\r\n"),
        MODEL + "\n",
        MODEL.rstrip(),
        MODEL.replace("V6.20", "V6.02"),
        MODEL.encode().replace(b" #\n", b" #\xff docid\n"),
        MODEL.replace("0 # number of training", "88 # number of training"),
    ],
    ids=["CRLF", "blank line", "no last newline", "version", "comment", "documents"],
)
def test_harmless_variants_are_read(tmp_path, text):
    np.testing.assert_array_equal(load(tmp_path, text).coef_[:2], [1.9970672, -3.0596602])


@pytest.mark.parametrize(
    ("kernel", "name"),
    [("1", "polynomial"), ("2", "radial basis"), ("3", "sigmoid"), ("4", "user"), ("9", "unknown")],
)
def test_other_kernels_are_refused(tmp_path, kernel, name):
    with pytest.raises(ValueError, match=rf"/m:2: kernel type '{kernel}' \({name}.* not linear"):
        load(tmp_path, MODEL.replace("0 # kernel", f"{kernel} # kernel"))


MALFORMED = {
    "header cut off": (HEADER[:60], r":3: the file ends|:3: .* is not the kernel parameter -d"),
    "header only": (HEADER, r":12: the file ends before support vector 1 of 1"),
    "line missing": (MODEL.replace("1 # kernel parameter -s \n", ""), r":5: .* is not the .* -s"),
    "line without name": (MODEL.replace("6 # highest feature index", "6"), r":8: '6' is not the"),
    "highest index": (MODEL.replace("6 # high", "x # high"), r":8: the highest feature index is"),
    "no features": (
        MODEL.replace("6 # high", "0 # high"),
        r":8: .* must be an integer of at least",
    ),
    "huge index": (
        MODEL.replace("6 # high", "1000000000000 # high"),
        r":8: the highest feature index is 1000000000000 and must be at most 2,147,483,647",
    ),
    "threshold": (MODEL.replace("0 # thr", "nan # thr"), r":11: the threshold is 'nan'"),
    "count": (MODEL.replace("2 # number", "0 # number"), r":10: the number of support vectors"),
    "few vectors": (
        MODEL.replace("2 # number", "3 # number"),
        r":13: the file ends before .* 2 of 2",
    ),
    "many vectors": (MODEL + "1 1:1 #\n", r":13: '1 1:1 #' comes after the 1 support vectors"),
    "no alpha": (HEADER + "#\n", r":12: the support vector has no alpha"),
    "word as alpha": (HEADER + "a 1:2 #\n", r":12: alpha is 'a' and must be a finite number"),
    "no colon": (HEADER + "1 12 #\n", r":12: '12' is not <feature>:<value>"),
    "index 0": (HEADER + "1 0:2 #\n", r":12: a feature index is '0' and must be an integer of"),
    "large index": (HEADER + "1 7:2 #\n", r":12: feature 7 is above the highest .*, 6"),
    "same index": (HEADER + "1 2:1 2:1 #\n", r":12: feature 2 comes after 2"),
    "falling index": (HEADER + "1 3:1 2:1 #\n", r":12: feature 2 comes after 3"),
    "no value": (HEADER + "1 1: #\n", r":12: feature 1 is '' and must be a finite number"),
    "NaN": (HEADER + "1 1:nan #\n", r":12: feature 1 is 'nan'"),
    "infinity": (HEADER + "1 1:-1e999 #\n", r":12: feature 1 is '-1e999'"),
    "overflow": (HEADER + "1e200 1:1e200 #\n", r": the sum of the support vectors overflows"),
}


@each(("text", "message"), MALFORMED.values())
def test_malformed_lines_are_named(tmp_path, text, message):
    with pytest.raises(ValueError, match=r"/m" + message):
        load(tmp_path, text)
