"""train and predict of LIBLINEAR-ranksvm."""

import os
from contextlib import suppress

from marginrank.cli.commands.compat._arguments import (
    Flag,
    ParsedArguments,
    Program,
    number,
    only,
    positive,
)
from marginrank.cli.commands.compat._models import only_weights, write_scores
from marginrank.cli.support.checks import check_files, check_writable
from marginrank.cli.support.streams import write_out
from marginrank.fit.peers import fit_like_liblinear
from marginrank.io.letor import load_letor
from marginrank.metrics import letor_mean_ndcg
from marginrank.metrics.pairwise import pairs_in_order
from marginrank.models import write_model

DTYPE = "float64"  # of features in LIBLINEAR
RANKING_ONLY = "8 is the ranking solver; for others use LIBLINEAR, or scikit-learn's LinearSVC"


def train(given: ParsedArguments) -> None:
    """Train on training_set_file and write model_file."""
    training_set = given.files[0]
    model_file = [*given.files, f"{os.path.basename(training_set)}.model"][1]
    check_writable(model_file)
    check_files([training_set], [model_file])
    data = load_letor(training_set, dtype=DTYPE)
    if data.cost is not None:
        raise ValueError(f"{training_set} has cost:, which LIBLINEAR does not support; remove it.")
    fit = fit_like_liblinear(data, c=given.values["-c"], epsilon=given.values["-e"])
    write_model(only_weights(fit, not given.values["-q"]), model_file, "liblinear")


def predict(given: ParsedArguments) -> None:
    """Write the score of each line of test_file, with all digits."""
    data, scores = write_scores(*given.files, dtype=DTYPE, digits=".17g")
    if not given.values["-q"]:
        # LIBLINEAR-ranksvm counts a pair of equal scores as in order.
        good, total = (float(x.sum()) for x in pairs_in_order(data.y, -scores, data.qid))
        accuracy = f"{100 * (1 - good / total):g}%" if total else "none, as there are no pairs"
        write_out(f"Pairwise Accuracy = {accuracy}\n")
        with suppress(ValueError):  # for labels that NDCG does not allow
            ndcg = letor_mean_ndcg(data.y, scores, qid=data.qid)
            write_out(f"MeanNDCG (LETOR) = {ndcg:g}\n")


QUIET = Flag("print nothing", None, False)

TRAIN = Program(
    "train [flags] training_set_file [model_file]",
    {
        "-s": Flag("solver, 8 for ranking", only([8], RANKING_ONLY), 8),
        "-c": Flag("weight of the loss", positive, 1.0),
        "-e": Flag("tolerance: |F'(w)| is at most this times |F'(0)|", positive, 0.001),
        "-B": Flag("constant feature", lambda text: _no_bias(number(text)), -1.0),
        "-q": QUIET,
        "-p": Flag("width of the loss of regression", number, unused=True),
        "-wi": Flag("weight of class i", unsupported="rankings have ordered labels, not classes"),
        "-v": Flag(
            "cross validation",
            unsupported="use marginrank tune --folds, whose folds hold whole queries",
        ),
    },
    train,
    (1, 2),
    prefixes={"-w": "-wi"},
)
PREDICT = Program(
    "predict [flags] test_file model_file output_file",
    {
        "-b": Flag(
            "probabilities, 0 for none", only([0], "a ranking model has no probabilities"), 0
        ),
        "-q": QUIET,
    },
    predict,
    (3, 3),
)


def _no_bias(value: float) -> float:
    if value >= 0:
        raise ValueError("is not supported: a constant feature changes no ranking; drop it")
    return value
