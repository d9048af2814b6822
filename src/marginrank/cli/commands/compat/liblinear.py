"""train and predict of LIBLINEAR-ranksvm."""

import os
from typing import TYPE_CHECKING, Any

from marginrank.cli.commands.compat._arguments import Flag, Given, Program, number, only, positive
from marginrank.cli.commands.compat._models import only_weights, write_scores
from marginrank.cli.support.checks import check_files, check_writable
from marginrank.cli.support.streams import write_out

if TYPE_CHECKING:
    from marginrank.data import RankingData

DTYPE = "float64"  # as LIBLINEAR has it
RANKING_ONLY = "8 is the solver that ranks; for others take LIBLINEAR, or LinearSVC of scikit-learn"


def train(given: Given) -> None:
    """Train on training_set_file and write model_file."""
    from marginrank.fit.peers import fit_like_liblinear
    from marginrank.io.letor import load_letor
    from marginrank.models import write_model

    training_set = given.files[0]
    model_file = [*given.files, f"{os.path.basename(training_set)}.model"][1]
    check_writable(model_file)
    check_files([training_set], [model_file])
    data = load_letor(training_set, dtype=DTYPE)
    if data.cost is not None:
        raise ValueError(f"{training_set} has cost:, which LIBLINEAR does not know; drop it.")
    fit = fit_like_liblinear(data, c=given.values["-c"], epsilon=given.values["-e"])
    write_model(only_weights(fit, not given.values["-q"]), model_file, "liblinear")


def predict(given: Given) -> None:
    """Write the score of each line of test_file, with all digits."""
    data, scores = write_scores(*given.files, dtype=DTYPE, digits=".17g")
    if not given.values["-q"]:
        write_out(_judged(data, scores))


def _judged(data: "RankingData", scores: Any) -> str:
    """Return what LIBLINEAR-ranksvm tells; a pair of equal scores counts as in order there."""
    from marginrank.metrics import letor_mean_ndcg
    from marginrank.metrics.pairwise import pairs_in_order

    good, total = (float(x.sum()) for x in pairs_in_order(data.y, -scores, data.qid))
    accuracy = f"{100 * (1 - good / total):g}%" if total else "none, as there are no pairs"
    lines = f"Pairwise Accuracy = {accuracy}\n"
    try:
        return f"{lines}MeanNDCG (LETOR) = {letor_mean_ndcg(data.y, scores, qid=data.qid):g}\n"
    except ValueError:  # labels that no gain is made of
        return lines


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
        "-wi": Flag("weight of class i", refused="ranking knows labels in an order, no classes"),
        "-v": Flag(
            "cross validation", refused="folds here hold whole queries; use marginrank tune --folds"
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
        raise ValueError(
            "cannot be honoured: a feature that all documents share changes no order; drop it"
        )
    return value
