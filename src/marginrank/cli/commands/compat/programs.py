"""Replacements of SVM^rank's svm_rank_learn and svm_rank_classify, and of LIBLINEAR-ranksvm."""

import os
from contextlib import suppress
from typing import Any

import numpy as np

from marginrank.cli.commands.compat import arguments
from marginrank.cli.commands.compat.arguments import Flag, ParsedArguments, Program
from marginrank.cli.support.checks import check_files, check_writable
from marginrank.cli.support.errors import warn_of
from marginrank.cli.support.files import write_text
from marginrank.cli.support.streams import write_out
from marginrank.data import RankingData
from marginrank.fit.peers import CLOSE, fit_like_liblinear, fit_like_svm_rank, scores_by
from marginrank.io.letor import load_letor
from marginrank.metrics import letor_mean_ndcg
from marginrank.metrics.pairwise import pairs_in_order
from marginrank.models import LinearModel, read_model, write_model
from marginrank.models.fit_report import StopReason, relative_distance, report_of

SVM_DTYPE = "float32"  # type of features in SVM-light
LIBLINEAR_DTYPE = "float64"  # type of features in LIBLINEAR
OPTIMIZER = ("-k", "-f", "-b", "-n", "-m", "-h", "-#")
KERNEL = ("-d", "-g", "-s", "-r", "-u")
HOW = "it tunes the optimizer of SVM^rank, which is not used here"
LINEAR_ONLY = "models must be linear; for kernels, use marginrank.KernelRankSVM in Python"


def _learn(given: ParsedArguments) -> None:
    examples, model_file = [*given.files, "svm_struct_model"][:2]
    check_writable(model_file)
    check_files([examples], [model_file])
    verbose = given.values["-v"] >= 1
    data = load_letor(examples, dtype=SVM_DTYPE)
    if data.cost is not None:
        warn_of(f"{examples}: cost: is ignored, as in SVM^rank; use marginrank train to apply it.")
        data.cost = None
    if verbose:
        write_out(
            f"Training set properties: {data.n_features} features, {data.n_queries} rankings, "
            f"{data.n_documents} examples\n"
        )
        if given.unused:
            write_out(f"Without effect on the result: {', '.join(given.unused)}\n")
    options = {name: given.values[flag] for name, flag in (("c", "-c"), ("epsilon", "-e"))}
    by_query = given.values["-l"] == 2
    fitted = fit_like_svm_rank(data, **options, by_query=by_query)
    write_model(_only_weights(fitted, verbose), model_file, "svmrank")


def _classify(given: ParsedArguments) -> None:
    files = [*given.files, "svm_predictions"][:3]
    data, scores = _write_scores(*files, dtype=SVM_DTYPE, digits=".8f")
    if given.values["-v"] >= 1:
        write_out(_evaluation(data, scores))


def _evaluation(data: RankingData, scores: Any) -> str:
    """Return the text that svm_rank_classify prints; a pair with equal scores counts as swapped."""
    good, total = pairs_in_order(data.y, scores, data.qid)
    swapped = total - good
    loss = float(np.mean(np.divide(swapped, total, out=np.zeros_like(total), where=total > 0)))
    wrong = np.count_nonzero(swapped)
    n = data.n_queries
    return (
        f"Average loss on test set: {loss:.4f}\n"
        f"Zero/one-error on test set: {100 * wrong / n:.2f}% ({n - wrong} correct, {wrong} "
        f"incorrect, {n} total)\n"
        f"Total Num Swappedpairs  : {swapped.sum():6.0f}\n"
        f"Avg Swappedpairs Percent: {100 * loss:6.2f}\n"
    )


VERBOSITY = Flag("amount of output, 0 (none) to 3", arguments.integer, 1)
OF_SVM_LIGHT = Flag("amount of output of SVM-light", arguments.integer, unused=True)

LEARN = Program(
    "svm_rank_learn [flags] example_file [model_file]",
    {
        "-v": VERBOSITY,
        "-y": OF_SVM_LIGHT,
        "-c": Flag("weight of the loss against the regularization", arguments.positive, 0.01),
        "-p": Flag(
            "norm of the slack variables; must be 1",
            arguments.only([1], "squared slacks of queries are not a sum over pairs"),
            1,
        ),
        "-o": Flag(
            "rescaling method; must be 2 (margin rescaling)",
            arguments.only([2], "SVM^rank itself supports margin rescaling only"),
            2,
        ),
        "-l": Flag(
            "loss: 1 (number of swapped pairs) or 2 (their share in each query)",
            arguments.only(
                [1, 2], "SVM^rank itself supports 1 (swapped pairs) and 2 (their share)"
            ),
            1,
        ),
        "-w": Flag(
            "algorithm, 0 to 4",
            arguments.only(range(5), "only the algorithms 0 to 4 reach the optimum"),
            unused=True,
        ),
        "-e": Flag("tolerance; smaller is more precise", arguments.positive, 0.001),
        **{letter: Flag(HOW, arguments.number, unused=True) for letter in OPTIMIZER},
        "-t": Flag("kernel; must be 0 (linear)", arguments.only([0], LINEAR_ONLY), 0),
        **{letter: Flag("parameter of nonlinear kernels", unused=True) for letter in KERNEL},
        "-a": Flag(
            "file to write dual variables to", unsupported="this solver has no dual variables"
        ),
    },
    _learn,
    (1, 2),
    help_flags=("-?", "--help"),
)
CLASSIFY = Program(
    "svm_rank_classify [flags] example_file model_file [output_file]",
    {"-v": VERBOSITY, "-y": OF_SVM_LIGHT},
    _classify,
    (2, 3),
)


RANKING_ONLY = "8 is the ranking solver; for others use LIBLINEAR, or scikit-learn's LinearSVC"


def _train(given: ParsedArguments) -> None:
    training_set = given.files[0]
    model_file = [*given.files, f"{os.path.basename(training_set)}.model"][1]
    check_writable(model_file)
    check_files([training_set], [model_file])
    data = load_letor(training_set, dtype=LIBLINEAR_DTYPE)
    if data.cost is not None:
        raise ValueError(
            f"{training_set}: lines have cost:, which LIBLINEAR does not support; remove it."
        )
    fit = fit_like_liblinear(data, c=given.values["-c"], epsilon=given.values["-e"])
    write_model(_only_weights(fit, not given.values["-q"]), model_file, "liblinear")


def _predict(given: ParsedArguments) -> None:
    data, scores = _write_scores(*given.files, dtype=LIBLINEAR_DTYPE, digits=".17g")
    if not given.values["-q"]:
        # LIBLINEAR-ranksvm counts a pair of equal scores as in order.
        good, total = (float(x.sum()) for x in pairs_in_order(data.y, -scores, data.qid))
        accuracy = f"{100 * (1 - good / total):g}%" if total else "undefined (no pairs)"
        write_out(f"Pairwise Accuracy = {accuracy}\n")
        with suppress(ValueError):  # NDCG does not support the labels
            ndcg = letor_mean_ndcg(data.y, scores, qid=data.qid)
            write_out(f"MeanNDCG (LETOR) = {ndcg:g}\n")


QUIET = Flag("print nothing", None, False)

TRAIN = Program(
    "train [flags] training_set_file [model_file]",
    {
        "-s": Flag("solver; must be 8 (ranking)", arguments.only([8], RANKING_ONLY), 8),
        "-c": Flag("weight of the loss against the regularization", arguments.positive, 1.0),
        "-e": Flag(
            "tolerance; stop when the gradient norm has shrunk to this share of its first value",
            arguments.positive,
            0.001,
        ),
        "-B": Flag(
            "value of an additional constant feature; must be negative (no such feature)",
            lambda text: _no_bias(arguments.number(text)),
            -1.0,
        ),
        "-q": QUIET,
        "-p": Flag("tolerance of regression losses", arguments.number, unused=True),
        "-wi": Flag("weight of class i", unsupported="ranking labels are ordered, not classes"),
        "-v": Flag(
            "cross-validation",
            unsupported="use marginrank tune --folds",
        ),
    },
    _train,
    (1, 2),
    prefixes={"-w": "-wi"},
)
PREDICT = Program(
    "predict [flags] test_file model_file output_file",
    {
        "-b": Flag(
            "print probabilities; must be 0 (no)",
            arguments.only([0], "a ranking model has no probabilities"),
            0,
        ),
        "-q": QUIET,
    },
    _predict,
    (3, 3),
)


def _no_bias(value: float) -> float:
    if value >= 0:
        raise ValueError("is not supported: a constant feature cannot change a ranking; drop -B")
    return value


def _only_weights(model: LinearModel, verbose: bool) -> LinearModel:
    """Return a model with the weights only; print the result of the fit, and emit its warning."""
    report = report_of(model)
    if report.stop_reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    distance = relative_distance(report)
    if distance > CLOSE:
        warn_of(
            f"the objective is within a relative {distance:.1e} of the optimum, but {CLOSE:g} was "
            "requested; scale the features."
        )
    if verbose:
        write_out(
            f"Objective value: {report.objective:.10g}\n"
            f"Upper bound on duality gap: {report.gap:.3g}\n"
            f"Iterations: {report.n_iter}, pairs: {report.n_pairs}\n"
        )
    return LinearModel(model.coef, {})


def _write_scores(
    examples: str, model_file: str, output: str, *, dtype: str, digits: str
) -> tuple[RankingData, Any]:
    check_writable(output)
    check_files([examples, model_file], [output])
    model = read_model(model_file)
    data = load_letor(examples, dtype=dtype)
    scores = scores_by(model.coef, data)
    write_text(output, "".join(f"{score:{digits}}\n" for score in scores.tolist()))
    return data, scores
