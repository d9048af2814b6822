"""marginrank train-sparse."""

import json

import numpy as np
import pytest

from marginrank import SparseRankSVM, load_letor, load_model, metrics, sparse_path


@pytest.fixture(scope="module")
def data(train_txt):
    return load_letor(train_txt)


@pytest.mark.parametrize(
    ("flags", "parameters"),
    [
        ((), {}),
        (("-C", "5"), {"C": 5.0}),
        (("--radius", "0.3", "--positive"), {"radius": 0.3, "positive": True}),
        (("--radius", "0.3", "--solver", "fenchel"), {"radius": 0.3, "solver": "fenchel"}),
        (
            ("--radius", "0.3", "--solver", "fenchel", "--variant", "away"),
            {"radius": 0.3, "solver": "fenchel", "variant": "away"},
        ),
        (("-C", "0.01", "--normalization", "none"), {"C": 0.01, "normalization": "none"}),
        (
            ("-C", "5", "--l1-ratio", "0.5", "--loss", "huber"),
            {"C": 5.0, "l1_ratio": 0.5, "loss": "huber"},
        ),
        (
            ("-C", "5", "--normalization", "query", "--pair-cost", "gain", "--random-state", "3"),
            {"C": 5.0, "normalization": "query", "pair_cost": "gain", "random_state": 3},
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_equals_the_python_api_bitwise(run, tmp_path, train_txt, data, flags, parameters):
    model = tmp_path / "m.json"
    done = run("train-sparse", train_txt, "--model", model, "--tol", "1e-4", "--json", *flags)
    assert "warning" not in done.stderr
    expected = SparseRankSVM(tol=1e-4, **parameters).fit(data.X, data.y, qid=data.qid)
    loaded = load_model(model)
    assert type(loaded) is SparseRankSVM
    assert loaded.get_params() == expected.get_params()
    np.testing.assert_array_equal(loaded.coef_, expected.coef_)
    result = json.loads(done.stdout)
    assert result["objective"] == expected.objective_
    assert result["gap"] == expected.gap_
    assert result["parameters"] == loaded.get_params()


def test_validation_and_evaluate(run, tmp_path, train_txt, test_txt):
    model = tmp_path / "m.json"
    flags = ("--radius", "0.3", "--valid", test_txt, "--metrics", "ndcg@3")
    trained = run("train-sparse", train_txt, "--model", model, "--json", *flags)
    test = load_letor(test_txt, n_features=6)
    expected = metrics.ndcg(test.y, load_model(model).predict(test.X), qid=test.qid, k=3)
    assert json.loads(trained.stdout)["valid"] == {"ndcg@3": expected}
    evaluated = run("evaluate", model, test_txt, "--metrics", "ndcg@3")
    assert f"{expected:.4f}" in evaluated.stdout


@pytest.mark.parametrize("parameter", ["C", "radius"])
def test_a_path_equals_the_python_api(run, tmp_path, train_txt, test_txt, data, parameter):
    test = load_letor(test_txt, n_features=6)
    path = sparse_path(data, n_points=7, parameter=parameter, validation=test, metric="ndcg@3")
    model = tmp_path / "m.json"
    flags = ("--path", "7", "--parameter", parameter, "--metrics", "ndcg@3,auc")
    done = run("train-sparse", train_txt, "--model", model, "--valid", test_txt, "--json", *flags)
    result = json.loads(done.stdout)
    told = result["path"]
    assert (told["parameter"], told["metric"], told["best"]) == (
        parameter,
        "ndcg@3",
        path.best_index,
    )
    assert [point[parameter] for point in told["points"]] == path.values.tolist()
    assert [point["score"] for point in told["points"]] == path.scores.tolist()
    assert [point["gap"] for point in told["points"]] == path.gaps.tolist()
    assert [point["nonzero"] / 6 for point in told["points"]] == path.sparsity.tolist()
    best = SparseRankSVM(**{parameter: path.values[path.best_index]}).fit(
        data.X, data.y, qid=data.qid
    )
    np.testing.assert_array_equal(load_model(model).coef_, best.coef_)
    assert result["parameters"][parameter] == path.values[path.best_index]
    assert result["valid"].keys() == {"ndcg@3", "auc"}
    assert {"path", "solve"} <= result["seconds"].keys()


def test_a_path_that_says_little_is_a_warning(run, tmp_path, train_txt):
    useless, tied = tmp_path / "v.txt", tmp_path / "tied.txt"
    useless.write_text("0 qid:1 1:1\n0 qid:1 1:2\n")
    tied.write_text("0 qid:1 1:1\n1 qid:1 1:1\n")
    flags = ("train-sparse", train_txt, "--model", tmp_path / "m.json", "--path", "3", "--valid")
    done = run(*flags, tied, "--metrics", "ndcg@3", "--json")
    assert "ndcg@3 is the same for all models" in done.stderr
    assert json.loads(done.stdout)["path"]["best"] == 0
    for metric in ("auc", "ndcg@3"):
        done = run(*flags, useless, "--metrics", metric, code=2)
        assert f"{metric} has no value on the validation data" in done.stderr
    done = run(*flags, tied, "--max-iter", "1", "--metrics", "ndcg@3", "--json")
    assert done.stderr.count("of 3 models of the path did not reach") == 1
    assert "--max-iter" in done.stderr
    assert "--tol" not in done.stderr
    assert not all(point["converged"] for point in json.loads(done.stdout)["path"]["points"])


def test_a_path_as_a_table_and_a_plot(run, tmp_path, train_txt, test_txt):
    plot = tmp_path / "path.png"
    flags = ("--path", "4", "--plot", plot, "--gain", "linear", "--metrics", "auc,ndcg@3")
    model = tmp_path / "m.json"
    done = run("train-sparse", train_txt, "--model", model, "--valid", test_txt, *flags)
    lines = [line.split() for line in done.stdout.splitlines() if line.strip()]
    assert lines[0][0] == "Converged"
    path = lines[lines.index(["Path"]) :]
    assert path[1] == ["C", "non-zero", "relative", "gap", "auc"]
    assert path[2][1] == "0"
    assert sum(line[-1] == "best" for line in path[2:]) == 1
    assert plot.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--pairs", "some.pairs"), "--pairs is a flag of train, not of train-sparse."),
        (("--lam=0.1",), "--lam is a flag of train and train-additive, not of train-sparse."),
        (
            ("--margin", "label"),
            "--margin is a flag of tune, train, train-additive and train-online, "
            "not of train-sparse.",
        ),
        (("--early-stopping",), "--early-stopping is a flag of train-online, not of train-sparse."),
        (("--plot", "path.png"), "--plot needs --path."),
        (("--parameter", "radius"), "--parameter needs --path."),
        (("--path", "5"), "--path needs --valid."),
        (("-C", "2", "--radius", "1"), "--C cannot be combined with --radius; drop one."),
        (
            ("--path", "5", "--valid", "v.txt", "--l1-ratio", "0"),
            "--l1-ratio 0 has no default path; use a positive value.",
        ),
        (
            ("--path", "5", "--valid", "v.txt", "--parameter", "radius", "--l1-ratio", "0.5"),
            "--l1-ratio cannot be combined with a path of radii; drop one of them.",
        ),
        (("--path", "5", "-C", "2"), "--C cannot be combined with --path; drop one."),
        (("--path", "5", "--radius", "2"), "--radius cannot be combined with --path; drop one."),
        (
            ("--path", "5", "--solver", "fenchel"),
            "--solver cannot be combined with --path; drop one.",
        ),
        (
            ("--variant", "away"),
            "--variant has no effect with --solver proximal_newton; it needs --solver fenchel.",
        ),
        (
            ("--path", "5", "--variant", "away"),
            "--variant cannot be combined with --path; drop one.",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_flags_without_meaning_are_refused(error_of, tmp_path, flags, sentence):
    model = tmp_path / "m.json"
    assert error_of("train-sparse", "not_read.txt", "--model", model, *flags) == sentence


@pytest.mark.parametrize(
    ("flags", "start"),
    [
        (("--solver", "newton"), "--solver 'newton'"),
        (
            ("--solver", "fenchel"),
            "--solver 'fenchel' does not support --loss 'squared_hinge' with a penalty (--C, no "
            "--radius); ",
        ),
        (
            ("--loss", "hinge", "--solver", "fenchel", "--radius", "1"),
            "--solver 'fenchel' does not support --loss 'hinge' in an l1 ball",
        ),
        (("--objective", "ndcg"), "--objective 'ndcg' must be"),
        (("--objective", "ndcg@5", "--pair-cost", "gain"), "--objective 'ndcg@5' cannot be"),
        (("--objective", "ndcg@5", "--path", "5", "--valid", "v.txt"), "--objective"),
        (("--radius", "0"), "--radius 0"),
        (("--radius", "1", "--l1-ratio", "0.5"), "--l1-ratio 0.5 cannot be combined with --radius"),
        (("--l1-ratio", "1.5"), "--l1-ratio 1.5 must be a number from 0 to 1"),
        (("--path", "0", "--valid", "v.txt"), "--path 0 must be an integer from 1 to 10000."),
        (("--path", "10001", "--valid", "v.txt"), "--path 10001 must be an integer from 1 to"),
        (("--path", "5", "--valid", "v.txt", "--parameter", "r"), "--parameter 'r' must be one of"),
        (("--path", "5", "--valid", "v.txt", "--plot", "path.xyz"), "path.xyz must end in one of"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_values_are_refused_before_reading(error_of, tmp_path, flags, start):
    sentence = error_of("train-sparse", "not_read.txt", "--model", tmp_path / "m.json", *flags)
    assert sentence.startswith(start)


def test_features_without_effect_are_one_warning_of_a_path(run, tmp_path, train_txt):
    constant = tmp_path / "constant.txt"
    lines = train_txt.read_text().splitlines()
    constant.write_text("".join(f"{line.partition('#')[0].rstrip()} 99:1\n" for line in lines))
    flags = ("--model", tmp_path / "m.json", "--valid", constant, "--scale", "standard")
    done = run("train-sparse", constant, *flags, "--path", "3", "--json")
    assert done.stderr.count("Features without effect") == 1
