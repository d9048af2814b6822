"""svm_rank_learn and svm_rank_classify of SVM^rank."""

from typing import Any

import numpy as np

from marginrank.cli.commands.compat._arguments import (
    Flag,
    ParsedArguments,
    Program,
    integer,
    number,
    only,
    positive,
)
from marginrank.cli.commands.compat._models import only_weights, write_scores
from marginrank.cli.support.checks import check_files, check_writable
from marginrank.cli.support.streams import write_out
from marginrank.cli.support.training import warn_of
from marginrank.data import RankingData
from marginrank.fit.peers import fit_like_svm_rank
from marginrank.io.letor import load_letor
from marginrank.metrics.pairwise import pairs_in_order
from marginrank.models import write_model

DTYPE = "float32"  # of features in SVM-light
OPTIMIZER = ("-k", "-f", "-b", "-n", "-m", "-h", "-#")
KERNEL = ("-d", "-g", "-s", "-r", "-u")
HOW = "flag of its optimizer"
LINEAR_ONLY = "only linear models; for kernels see marginrank.KernelRankSVM"


def learn(given: ParsedArguments) -> None:
    """Train on example_file and write model_file."""
    examples, model_file = [*given.files, "svm_struct_model"][:2]
    check_writable(model_file)
    check_files([examples], [model_file])
    verbose = given.values["-v"] >= 1
    data = load_letor(examples, dtype=DTYPE)
    if data.cost is not None:
        warn_of("cost: is ignored, as in SVM^rank; marginrank train uses it.")
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
    write_model(only_weights(fitted, verbose), model_file, "svmrank")


def classify(given: ParsedArguments) -> None:
    """Write the score of each line of example_file, with eight decimals as SVM^rank does."""
    files = [*given.files, "svm_predictions"][:3]
    data, scores = write_scores(*files, dtype=DTYPE, digits=".8f")
    if given.values["-v"] >= 1:
        write_out(_evaluation(data, scores))


def _evaluation(data: RankingData, scores: Any) -> str:
    """Return the output of svm_rank_classify; a pair of equal scores counts as swapped."""
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


VERBOSITY = Flag("how much to print, 0 to 3", integer, 1)
OF_SVM_LIGHT = Flag("how much SVM-light prints", integer, unused=True)

LEARN = Program(
    "svm_rank_learn [flags] example_file [model_file]",
    {
        "-v": VERBOSITY,
        "-y": OF_SVM_LIGHT,
        "-c": Flag("weight of the loss, divided by the number of queries", positive, 0.01),
        "-p": Flag(
            "norm of the slacks, 1",
            only([1], "squared slacks of queries are not a sum over pairs"),
            1,
        ),
        "-o": Flag(
            "rescaling of the loss, 2 for margins",
            only([2], "SVM^rank itself supports margin rescaling only"),
            2,
        ),
        "-l": Flag(
            "loss: 1 counts swapped pairs, 2 their share in each query",
            only([1, 2], "SVM^rank itself supports 1 (swapped pairs) and 2 (their share)"),
            1,
        ),
        "-w": Flag(
            "algorithm, 0 to 4",
            only(range(5), "only the algorithms 0 to 4 reach the optimum"),
            unused=True,
        ),
        "-e": Flag("tolerance, relative to the largest loss", positive, 0.001),
        **{letter: Flag(HOW, number, unused=True) for letter in OPTIMIZER},
        "-t": Flag("kernel, 0 for linear", only([0], LINEAR_ONLY), 0),
        **{
            letter: Flag("parameter of kernels that are not linear", unused=True)
            for letter in KERNEL
        },
        "-a": Flag("file for dual variables", unsupported="the solver has no dual variables"),
    },
    learn,
    (1, 2),
    help_flags=("-?", "--help"),
)
CLASSIFY = Program(
    "svm_rank_classify [flags] example_file model_file [output_file]",
    {"-v": VERBOSITY, "-y": OF_SVM_LIGHT},
    classify,
    (2, 3),
)
