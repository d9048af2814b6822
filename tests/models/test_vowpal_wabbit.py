"""Text models of Vowpal Wabbit, read as linear models."""

import numpy as np
import pytest

from marginrank import load_model
from marginrank.models import is_model, read_model

HEADER = """\
Version {version}
Id {id}
Min label:0
Max label:2
bits:{bits}
lda:{lda}
{ngram} ngram:
0 skip:
options:{options}
Checksum: 2673762800
"""
STATE = """\
:1
initial_t 0
norm normalizer 195.798
t 25
sd::oec.weighted_labeled_examples 16
current_pass 1
l1_state 0
l2_state 1
gd_ppw_state[0]total_weight = 1
"""
DEFAULTS = {"version": "9.10.0", "id": "", "bits": "18", "lda": "0", "ngram": "0", "options": ""}


def text_of(weights, flag=":0\n", **header):
    return HEADER.format(**(DEFAULTS | header)) + flag + weights


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a model to a file."""

    def written(text):
        (tmp_path / "m").write_text(text, encoding="utf-8")
        return tmp_path / "m"

    return written


def test_weights_by_name_without_the_constant(written):
    path = written(text_of("doc^bm25:5244:0.25\nConstant:116060:0.5\nclicks=é:9:-3e-05\n"))
    model = read_model(path)
    assert model.feature_names == ["doc^bm25", "clicks=é"]
    assert model.coef.tolist() == [0.25, -3e-5]
    assert is_model(path)
    assert load_model(path, format="vowpal_wabbit").coef_.tolist() == [0.25, -3e-5]


def test_the_state_of_the_learner_is_passed_over(written):
    weights = "f^a:5244:0.0650571 1.48172 0.727735\nConstant:116060:0.28 5.6 1\nf^b:9:-2 1 1\n"
    model = read_model(written(text_of(weights, STATE)))
    assert model.feature_names == ["f^a", "f^b"]
    assert model.coef.tolist() == [0.0650571, -2.0]


@pytest.mark.parametrize("namespace", ["", "f^", "^"])
def test_numbers_of_one_namespace_are_indices(written, namespace):
    weights = f"{namespace}4:4:1.5\n{namespace}1:1:-2\nConstant:116060:9\n"
    model = read_model(written(text_of(weights)))
    assert model.feature_names is None
    np.testing.assert_array_equal(model.coef, [-2.0, 0.0, 0.0, 1.5])


def test_numbers_of_two_namespaces_are_names(written):
    model = read_model(written(text_of("a^1:5:1.5\nb^1:6:2\n")))
    assert model.feature_names == ["a^1", "b^1"]


def test_zero_is_no_index(written):
    assert read_model(written(text_of("0:0:1.5\n1:1:2\n"))).feature_names == ["0", "1"]


def test_a_feature_may_be_called_as_the_constant(written):
    """The constant has a place of its own, which depends on the bits."""
    model = read_model(written(text_of("Constant:28:1\nConstant:77:2\n", bits="6")))
    assert (model.feature_names, model.coef.tolist()) == (["Constant"], [2.0])


def test_colons_and_stars_in_names(written):
    model = read_model(written(text_of("http://a:80:3:1\nx*y:4:2\n")))
    assert model.feature_names == ["http://a:80", "x*y"]


@pytest.mark.parametrize(
    "options",
    [" --noconstant", " --hash_seed 0 --link logistic", " --link=poisson --l2 -1e-3", " --ftrl"],
)
def test_options_of_linear_models(written, options):
    assert read_model(written(text_of("a:4:2\n", options=options))).coef.tolist() == [2.0]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (" --quadratic ab", "--quadratic"),
        (" --noconstant -q ::", "-q"),
        (" --interactions aa --ignore_linear a", "--interactions"),
        (" --oaa 3", "--oaa"),
        (" --csoaa_ldf=mc", "--csoaa_ldf=mc"),
        (" --cb_adf --cb_type mtr", "--cb_adf"),
        (" --coin", "--coin"),
        (" --nn 5", "--nn"),
    ],
)
def test_models_that_are_no_weighted_sum_are_refused_by_option(written, options, named):
    path = written(text_of("a:4:2\n", options=options))
    with pytest.raises(ValueError, match=rf"m:9: the option '{named}' makes the model something"):
        read_model(path)


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        ({"version": "7.10.2"}, "m:1: versions from 8 on are read; write the model with a newer"),
        ({"version": "9"}, "is no model file"),
        ({"lda": "5"}, "m:6: a topic model"),
        ({"ngram": "2"}, r"m:7: the model joins words \(--ngram\)"),
        ({"bits": "x"}, "m:5: bits is 'x' and must be an integer of at least 1"),
        ({"bits": "99"}, "m:5: bits is 99 and must be at most 63"),
    ],
)
def test_headers_that_are_refused(written, header, sentence):
    with pytest.raises(ValueError, match=sentence):
        read_model(written(text_of("a:4:2\n", **header)))


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        ("", "m:12: the file ends where the weights should follow"),
        ("Constant:116060:1\n", "m:13: the file ends where the weights should follow"),
        ("4:2\n", "m:12: '4:2' has no name: only the text of --invert_hash has names"),
        ("a:4:2\n:5:2\n", "m:13: weight 5 has no name: only the text of --invert_hash"),
        ("a:4:2\na:5:2\n", "m:13: the feature 'a' is there twice"),
        ("a:4:nan\n", "m:12: the weight of 'a' is 'nan' and must be a finite number"),
        ("a:4:0.19[0]\n", r"m:12: the weight of 'a' is '0.19\[0\]' and must be"),
        ("a:4:2 1 1\n", "m:12: 'a:4:2 1 1' is not <name>:<index>:<weight>"),
        ("a:4:2\nnonsense\n", "m:13: 'nonsense' is not <name>:<index>:<weight>"),
        ("a:x:2\n", "m:12: 'a:x:2' is not <name>:<index>:<weight>"),
    ],
)
def test_weights_that_are_refused(written, weights, sentence):
    with pytest.raises(ValueError, match=sentence):
        read_model(written(text_of(weights)))


def test_a_state_behind_weights_is_refused(written):
    path = written(text_of("a:4:2 1 1\ncurrent_pass 1\n", STATE))
    with pytest.raises(ValueError, match="'current_pass 1' is not <name>:<index>:<weight>"):
        read_model(path)


def test_hashed_models_with_a_state_are_refused(written):
    with pytest.raises(ValueError, match=r"m:20: '34875:0 2e\+10 1 1' has no name"):
        read_model(written(text_of("34875:0 2e+10 1 1\n", STATE)))


def test_weights_that_wait_for_shrinkage_are_refused(written):
    text = text_of("a:4:2 1 1\n", STATE.replace("l1_state 0", "l1_state 0.5"))
    with pytest.raises(ValueError, match=r"not shrunk by --l1 yet; .* --predict_only_model"):
        read_model(written(text))


def test_files_that_end_in_the_header_are_refused(written):
    text = text_of("a:4:2\n")
    for n_lines in range(1, 11):
        path = written("\n".join(text.splitlines()[:n_lines]))
        with pytest.raises(ValueError, match=rf"m:{n_lines + 1}: the file ends where"):
            read_model(path)


def test_a_header_without_bits_or_flag_is_refused(written):
    text = text_of("a:4:2\n")
    with pytest.raises(ValueError, match="m:9: 'bits' is missing in the header"):
        read_model(written(text.replace("bits:18\n", "")))
    with pytest.raises(ValueError, match="m:11: 'a:4:2' is not ':0' or ':1'"):
        read_model(written(text.replace("\n:0\n", "\n")))


def test_another_file_is_no_such_model(written):
    with pytest.raises(ValueError, match=r"m:1: this is not 'Version' and a number"):
        read_model(written("solver_type L2R\n"), "vowpal_wabbit")
