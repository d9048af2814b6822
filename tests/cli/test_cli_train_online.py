"""marginrank train-online."""

import json

import numpy as np
import pytest

from marginrank import SGDRankSVM, load_letor, load_model, metrics


def test_text_equals_the_python_api_bitwise(run, tmp_path, train_txt):
    model = tmp_path / "m.json"
    flags = ("-C", "0.1", "--chunk-documents", "50", "--json", "--verbose")
    done = run("train-online", train_txt, "--model", model, *flags)
    expected = SGDRankSVM(C=0.1).fit(train_txt, read_options={"chunk_documents": 50})
    loaded = load_model(model)
    assert loaded.coef_.tobytes() == expected.coef_.tobytes()
    assert loaded.get_params() == expected.get_params()
    result = json.loads(done.stdout)
    assert result["objective"] == expected.objective_
    assert result["gap"] == expected.gap_
    assert result["stop_reason"] == "stalled"
    data = load_letor(train_txt)
    assert result["data"] == {
        "documents": data.n_documents,
        "queries": data.n_queries,
        "features": data.n_features,
        "pairs": data.n_pairs,
    }
    assert "improves by --tol; the estimated" in done.stderr
    fix = ". Increase --n-iter-no-change or --tol, or use marginrank train.\n"
    assert fix in done.stderr
    passes = [line for line in done.stderr.splitlines() if line.startswith("pass ")]
    assert len(passes) == result["n_iter"] == expected.n_iter_


def test_store(run, tmp_path, train_txt):
    load_letor(train_txt).save(tmp_path / "store")
    run("train-online", tmp_path / "store", "--model", tmp_path / "m.json")
    expected = SGDRankSVM().fit(tmp_path / "store")
    assert load_model(tmp_path / "m.json").coef_.tobytes() == expected.coef_.tobytes()


def test_early_stopping_by_the_first_metric(run, tmp_path, train_txt, test_txt):
    model = tmp_path / "m.json"
    flags = ("--valid", test_txt, "--early-stopping", "--metrics", "ndcg@3 , pairwise_accuracy")
    done = run("train-online", train_txt, "--model", model, *flags, "--json")
    result = json.loads(done.stdout)
    assert result["stop_reason"] == "validated"
    best = max(line.metric for line in load_model(model).history_)
    test = load_letor(test_txt, n_features=6)
    scores = load_model(model).predict(test.X)
    assert best == result["valid"]["ndcg@3"] == metrics.ndcg(test.y, scores, qid=test.qid, k=3)


def test_the_limits_of_a_batch_fit_are_not_those_of_passes(run, tmp_path, train_txt):
    model = tmp_path / "m.json"
    done = run("train-online", train_txt, "--model", model, "--max-iter", "2", "--json")
    assert "marginrank: warning: The fit stopped because --max-iter was reached" in done.stderr
    assert ". Increase --max-iter or --tol.\n" in done.stderr
    parameters = json.loads(done.stdout)["parameters"]
    assert (parameters["max_iter"], parameters["tol"]) == (2, SGDRankSVM().tol)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (
            ["--solver", "tron"],
            "--solver is a flag of tune, train, train-sparse and train-additive, "
            "not of train-online.",
        ),
        (["--lam", "1"], "--lam is a flag of train and train-additive, not of train-online."),
        (["--pairs", "p.txt"], "--pairs is a flag of train, not of train-online."),
        (["--early-stopping"], "--early-stopping needs --valid."),
        (
            ["--early-stopping", "--valid", "v.txt", "--gain", "linear"],
            "--gain cannot be combined with --early-stopping; drop one.",
        ),
        (["--method", "document"], "--method 'document' must be one of"),
        (["--learning-rate", "fast"], "--learning-rate 'fast' must be one of 'auto', 'inverse'"),
        (["--eta0", "0"], "--eta0 0.0 must be a finite number, more than 0."),
        (
            ["--eta0", "0.5"],
            "--eta0 has no effect with --learning-rate auto; it needs --learning-rate inverse or "
            "constant.",
        ),
        (
            ["--no-shuffle", "--method", "pair"],
            "--no-shuffle has no effect with --method pair; it needs --method query.",
        ),
        (["--shuffle", "--method", "pair"], "--shuffle has no effect with --method pair;"),
        (["--chunk-documents", "0"], "--chunk-documents 0 must be an integer of at least 1."),
    ],
)
def test_flags_without_meaning(error_of, tmp_path, train_txt, flags, sentence):
    assert sentence in error_of("train-online", train_txt, "--model", tmp_path / "m.json", *flags)


@pytest.mark.parametrize("method", [{"method": "pair"}, {"method": "query", "shuffle": False}])
def test_every_parameter_with_a_flag_reaches_the_learner(run, tmp_path, train_txt, method):
    order = ("--no-shuffle",) if "shuffle" in method else ()
    flags = ("--method", method["method"], *order, "--learning-rate", "inverse", "--eta0", "0.5")
    more = ("--no-average", "--max-iter", "3", "--n-iter-no-change", "2", "--loss", "huber")
    pairs = ("--pair-cost", "gain", "--margin", "label", "--pair-selection", "adjacent")
    run("train-online", train_txt, "--model", tmp_path / "m.json", *flags, *more, *pairs)
    expected = SGDRankSVM(
        **method,
        learning_rate="inverse",
        eta0=0.5,
        average=False,
        max_iter=3,
        n_iter_no_change=2,
        loss="huber",
        pair_cost="gain",
        margin="label",
        pair_selection="adjacent",
    )
    loaded = load_model(tmp_path / "m.json")
    assert loaded.get_params() == expected.get_params()
    with pytest.warns(match="The fit stopped because max_iter"):
        expected.fit(train_txt)
    assert loaded.coef_.tobytes() == expected.coef_.tobytes()


def test_what_cannot_be_streamed(run, error_of, tmp_path, train_txt):
    table = tmp_path / "t.csv"
    table.write_text("label,qid,x\n1,1,2\n0,1,1\n")
    flags = ("--model", tmp_path / "m.json")
    assert "reads text files or a single store" in error_of("train-online", table, *flags)
    assert "can be read only once" in error_of("train-online", "-", *flags)
    piped = run("train-online", "/dev/fd/0", *flags, input=train_txt.read_text(), code=2)
    assert "/dev/fd/0 can be read only once" in piped.stderr
    group = ("--group", tmp_path / "sizes")
    assert error_of("train-online", train_txt, *flags, *group) == (
        "--group is a flag of tune, train, train-sparse and train-additive, not of train-online."
    )


def test_scikit_learn_is_not_imported(train_txt, tmp_path):
    import subprocess
    import sys

    code = (
        "import sys; from marginrank.cli.app import app; "
        f"app(['train-online', {str(train_txt)!r}, '--model', {str(tmp_path / 'm.json')!r}], "
        "standalone_mode=False); assert 'sklearn' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert np.isfinite(load_model(tmp_path / "m.json").coef_).all()
