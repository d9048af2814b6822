"""marginrank compat: the commands of the peers' READMEs, on files in their formats."""

import re
import subprocess
import sys

import numpy as np
import pytest

from marginrank import RankSVM, load_letor, load_model, metrics
from marginrank.cli.commands.compat import PROGRAMS

# The example of SVM^rank's page: three queries to learn from, one to test.
TRAIN = """\
# query 1
3 qid:1 1:1 2:1 3:0 4:0.2 5:0 # 1A
2 qid:1 1:0 2:0 3:1 4:0.1 5:1 # 1B
1 qid:1 1:0 2:1 3:0 4:0.4 5:0 # 1C
1 qid:1 1:0 2:0 3:1 4:0.3 5:0 # 1D
# query 2
1 qid:2 1:0 2:0 3:1 4:0.2 5:0 # 2A
2 qid:2 1:1 2:0 3:1 4:0.4 5:0 # 2B
1 qid:2 1:0 2:0 3:1 4:0.1 5:0 # 2C
1 qid:2 1:0 2:0 3:1 4:0.2 5:0 # 2D
# query 3
2 qid:3 1:0 2:0 3:1 4:0.1 5:1 # 3A
3 qid:3 1:1 2:1 3:0 4:0.3 5:0 # 3B
4 qid:3 1:1 2:0 3:0 4:0.4 5:1 # 3C
1 qid:3 1:0 2:1 3:1 4:0.5 5:0 # 3D
"""
TEST = """\
4 qid:4 1:1 2:0 3:0 4:0.2 5:1
3 qid:4 1:1 2:1 3:0 4:0.3 5:0
2 qid:4 1:0 2:0 3:0 4:0.2 5:1
1 qid:4 1:0 2:0 3:1 4:0.2 5:0
"""
PREFIXED = {
    "svm_rank_learn": "marginrank-svm_rank_learn",
    "svm_rank_classify": "marginrank-svm_rank_classify",
    "train": "marginrank-liblinear-train",
    "predict": "marginrank-liblinear-predict",
}


@pytest.fixture
def example3(tmp_path, monkeypatch):
    """Work where the folder example3 is."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "example3"
    folder.mkdir()
    (folder / "train.dat").write_text(TRAIN)
    (folder / "test.dat").write_text(TEST)
    return folder


def words(command):
    return command.split()


def numbers(path):
    return np.array([float(line) for line in path.read_text().splitlines()])


def weights_of(path):
    return load_model(path).coef_


def test_commands_of_svm_rank(run, example3):
    run("compat", *words("svm_rank_learn -c 3 example3/train.dat example3/model"))
    classify = "compat svm_rank_classify example3/test.dat example3/model example3/predictions"
    told = run(*classify.split()).stdout
    scores = numbers(example3 / "predictions")
    assert (np.diff(scores) < 0).all()  # "it predicts the correct ranking"
    assert told.splitlines() == [
        "Average loss on test set: 0.0000",
        "Zero/one-error on test set: 0.00% (1 correct, 0 incorrect, 1 total)",
        "Total Num Swappedpairs  :      0",
        "Avg Swappedpairs Percent:   0.00",
    ]
    train = load_letor(example3 / "train.dat")
    trained = train.X @ weights_of(example3 / "model")
    assert metrics.pairwise_accuracy(train.y, trained, qid=train.qid) == 1.0  # as the page says


def test_model_of_svm_rank_has_its_format(run, example3):
    run("compat", *words("svm_rank_learn -c 3 example3/train.dat example3/model"))
    *header, vector = (example3 / "model").read_text().splitlines()
    assert header[0] == "SVM-light Version V6.20"
    assert header[7] == "5 # highest feature index "
    assert len(header) == 11
    assert re.fullmatch(r"1( \d:[-+.e\d]+)+ #", vector)


def test_c_of_svm_rank_is_that_of_svm_light_times_the_queries(run, example3):
    run("compat", *words("svm_rank_learn -c 3 example3/train.dat example3/model"))
    data = load_letor(example3 / "train.dat")
    light = RankSVM(C=1.0, loss="hinge", tol=1e-9).fit(data)  # svm_learn -z p -c 1
    np.testing.assert_allclose(weights_of(example3 / "model"), light.coef_, atol=1e-3)
    assert light.objective_ > 0


def test_predictions_of_svm_rank_have_eight_decimals(run, example3):
    run("compat", "svm_rank_learn", "example3/train.dat")
    run("compat", "svm_rank_classify", "-v", "0", "example3/test.dat", "svm_struct_model")
    lines = (example3.parent / "svm_predictions").read_text().splitlines()
    assert all(re.fullmatch(r"-?\d+\.\d{8}", line) for line in lines)
    expected = load_letor(example3 / "test.dat").X @ weights_of(
        example3.parent / "svm_struct_model"
    )
    np.testing.assert_allclose([float(line) for line in lines], expected, atol=1e-8)


def test_counts_of_swapped_pairs_are_those_of_svm_rank(run, example3):
    (example3 / "some.dat").write_text("2 qid:1 1:1\n1 qid:1 1:1\n1 qid:1 1:0\n0 qid:2 1:5\n")
    (example3 / "model").write_text("solver_type L2R_L2LOSS_RANKSVM\nnr_class 2\nnr_feature 1\n"
                                    "bias -1\nw\n1 \n")  # fmt: skip
    told = run("compat", "svm_rank_classify", "example3/some.dat", "example3/model").stdout
    assert "Zero/one-error on test set: 50.00% (1 correct, 1 incorrect, 2 total)" in told
    assert "Total Num Swappedpairs  :      1" in told  # equal scores are swapped
    assert "Avg Swappedpairs Percent:  25.00" in told


def test_commands_of_liblinear(run, example3):
    run("compat", *words("train -s 8 example3/train.dat"))
    model = example3.parent / "train.dat.model"
    lines = model.read_text().splitlines()
    assert lines[:5] == [
        "solver_type L2R_L2LOSS_RANKSVM",
        "nr_class 2",
        "nr_feature 5",
        "bias -1",
        "w",
    ]
    assert len(lines) == 10
    told = run("compat", *words("predict example3/test.dat train.dat.model output")).stdout
    data = load_letor(example3 / "test.dat", dtype="float64")
    np.testing.assert_array_equal(numbers(example3.parent / "output"), data.X @ weights_of(model))
    assert told == "Pairwise Accuracy = 100%\nMeanNDCG (LETOR) = 1\n"


def test_c_of_liblinear_is_ours(run, example3):
    run("compat", *words("train -c 0.5 -e 1e-8 -q example3/train.dat model"))
    data = load_letor(example3 / "train.dat", dtype="float64")
    expected = RankSVM(C=0.5, tol=1e-12).fit(data)
    np.testing.assert_allclose(weights_of(example3.parent / "model"), expected.coef_, rtol=1e-6)


def test_liblinear_counts_equal_scores_as_in_order(run, example3):
    (example3 / "model").write_text("solver_type L2R_L2LOSS_RANKSVM\nnr_class 2\nnr_feature 1\n"
                                    "bias -1\nw\n0 \n")  # fmt: skip
    told = run("compat", *words("predict example3/test.dat example3/model output")).stdout
    assert told.startswith("Pairwise Accuracy = 100%\n")


def test_quiet_programs_print_nothing(run, example3):
    for command in (
        "svm_rank_learn -v 0 example3/train.dat model",
        "svm_rank_classify -v 0 example3/test.dat model predictions",
        "train -q example3/train.dat model",
        "predict -q example3/test.dat model output",
    ):
        assert run("compat", *command.split()).stdout == ""


def test_test_data_may_have_other_features_than_the_model(run, example3):
    run("compat", *words("train -q example3/train.dat model"))
    (example3 / "wide.dat").write_text("1 qid:1 1:2 9:7\n0 qid:1 1:1 9:8\n")
    run("compat", *words("predict -q example3/wide.dat model output"))
    w = weights_of(example3.parent / "model")
    np.testing.assert_array_equal(numbers(example3.parent / "output"), [2 * w[0], w[0]])


@pytest.mark.parametrize("program", PREFIXED)
def test_console_scripts_are_there(program):
    from importlib.metadata import entry_points

    (script,) = entry_points(group="console_scripts", name=PREFIXED[program])
    code = (
        "import sys\n"
        f"from marginrank.cli import {script.attr} as script\n"
        f"sys.argv = [{script.name!r}, '-?']\nscript()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: marginrank compat {PROGRAMS[program].usage}\n")


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_has_a_line_a_flag(invoke, program):
    told = invoke("compat", program, "-?").stdout
    assert [line.split()[0] for line in told.splitlines()[3:]] == list(PROGRAMS[program].flags)


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("svm_rank_learn -p 2 {}", "-p 2 is not supported: squared slacks"),
        ("svm_rank_learn -o 1 {}", "-o 1 is not supported: SVM^rank itself"),
        ("svm_rank_learn -l 0 {}", "-l 0 is not supported: SVM^rank itself"),
        ("svm_rank_learn -w 9 {}", "-w 9 is not supported: only the algorithms"),
        ("svm_rank_learn -t 2 {}", "-t 2 is not supported: models must be linear"),
        ("svm_rank_learn -a f {}", "-a is not supported"),
        ("svm_rank_learn -c 0 {}", "-c 0 must be a positive number."),
        ("svm_rank_learn -c x {}", "-c x is not a number."),
        ("svm_rank_learn -c nan {}", "-c nan must be a positive number."),
        ("svm_rank_learn --b {}", "Unknown option --b for svm_rank_learn; supported: -v -y -c"),
        (
            "svm_rank_learn -c20 {}",
            "Unknown option -c20 for svm_rank_learn; write -c 20, with a space",
        ),
        ("train -s=8 {}", "Unknown option -s=8 for train; write -s 8, with a space."),
        ("train -q1 {}", "Unknown option -q1 for train; supported: -s -c"),
        ("svm_rank_learn -c", "-c needs a value."),
        ("svm_rank_learn", "got 0 files; usage: marginrank compat svm_rank_learn [flags]"),
        ("svm_rank_learn {} model -c 1", "got 4 files; usage"),
        ("svm_rank_learn {} -c", "-c comes after the files; flags come first"),
        ("train -s 2 {}", "-s 2 is not supported: 8 is the ranking solver"),
        ("train -B 1 {}", "-B 1 is not supported: a constant feature"),
        ("train -w1 5 {}", "-w1 is not supported"),
        ("train -v 5 {}", "-v is not supported: use marginrank tune --folds"),
        ("predict -b 1 {} m o", "-b 1 is not supported: a ranking model has no prob"),
        ("svm_light_learn {}", "svm_light_learn must be one of svm_rank_learn,"),
        ("train none.txt", "none.txt: No such file or directory"),
        ("train {} {}", "would overwrite the input"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(invoke, example3, command, sentence):
    words = [word.replace("{}", str(example3 / "train.dat")) for word in command.split()]
    done = invoke("compat", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert list(example3.parent.iterdir()) == [example3]  # nothing was written


def test_flags_of_the_peers_optimiser_change_nothing_and_are_named(run, example3):
    flags = words("-w 4 -k 10 -f 7 -b 50 -n 5 -m 10 -h 7 -# 99 -d 3 -g 1 -s 1 -r 1 -u x -y 1")
    plain = run("compat", "svm_rank_learn", "example3/train.dat", "plain").stdout
    told = run("compat", "svm_rank_learn", *flags, "example3/train.dat", "flagged").stdout
    given = ", ".join(flags[::2])
    assert set(told.splitlines()) - set(plain.splitlines()) == {
        f"Without effect on the result: {given}"
    }
    folder = example3.parent
    assert (folder / "plain").read_bytes() == (folder / "flagged").read_bytes()


def test_shares_of_each_query_are_another_loss(run, example3):
    for loss in "12":
        run("compat", "svm_rank_learn", "-l", loss, "-c", "3", "example3/train.dat", f"model{loss}")
    first, second = (weights_of(example3.parent / f"model{loss}") for loss in "12")
    assert np.abs(first - second).max() > 0.01


def test_advice_has_no_flags_that_the_programs_lack(invoke, example3):
    data = example3 / "odd.dat"
    for line, sentence in (
        ("1 qid:1 1:nan", "pass marginrank convert --missing to replace it."),
        ("1 qid:1 0:1", "pass marginrank convert --zero-based if they start at 0."),
    ):
        data.write_text(f"{line}\n0 qid:1 1:0\n")
        done = invoke("compat", "train", str(data))
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.rstrip().endswith(sentence)


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_can_be_asked_for_as_everywhere(invoke, program):
    assert invoke("compat", program, "--help") == invoke("compat", program, "-?")
