"""svm_rank_learn and svm_rank_classify of SVM^rank."""

import warnings
from typing import TYPE_CHECKING, Any

from marginrank.cli.commands.compat._arguments import (
    Flag,
    Given,
    Program,
    integer,
    number,
    only,
    positive,
)
from marginrank.cli.commands.compat._models import only_weights, tell_unused, write_scores
from marginrank.cli.support.checks import check_files, check_writable
from marginrank.cli.support.streams import write_out

if TYPE_CHECKING:
    from marginrank.data import RankingData

DTYPE = "float32"  # as SVM-light has it
OPTIMISER = ("-k", "-f", "-b", "-n", "-m", "-h", "-#")
KERNEL = ("-d", "-g", "-s", "-r", "-u")
HOW = "flag of its optimiser"
LINEAR_ONLY = "only linear models are learned here; see marginrank.KernelRankSVM for kernels"


def learn(given: Given) -> None:
    """Train on example_file and write model_file."""
    from marginrank.fit.peers import fit_like_svm_rank
    from marginrank.io.letor import load_letor
    from marginrank.models import write_model

    examples, model_file = [*given.files, "svm_struct_model"][:2]
    check_writable(model_file)
    check_files([examples], [model_file])
    told = given.values["-v"] >= 1
    data = load_letor(examples, dtype=DTYPE)
    if data.cost is not None:
        warnings.warn(
            "cost: is not looked at, as in SVM^rank; marginrank train does so.", stacklevel=1
        )
        data.cost = None
    if told:
        write_out(_properties(data))
        tell_unused(given)
    options = {name: given.values[flag] for name, flag in (("c", "-c"), ("epsilon", "-e"))}
    by_query = given.values["-l"] == 2
    fitted = fit_like_svm_rank(data, **options, by_query=by_query)
    write_model(only_weights(fitted, told), model_file, "svmrank")


def _properties(data: "RankingData") -> str:
    return (
        f"Training set properties: {data.n_features} features, {data.n_queries} rankings, "
        f"{data.n_documents} examples\n"
    )


def classify(given: Given) -> None:
    """Write the score of each line of example_file, with eight decimals as SVM^rank does."""
    files = [*given.files, "svm_predictions"][:3]
    data, scores = write_scores(*files, dtype=DTYPE, digits=".8f")
    if given.values["-v"] >= 1:
        write_out(_judged(data, scores))


def _judged(data: "RankingData", scores: Any) -> str:
    """Return what svm_rank_classify tells; a pair of equal scores counts as swapped."""
    import numpy as np

    from marginrank.metrics.pairwise import pairs_in_order

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
            only([1], "a square of each query's sum of slacks is no sum over pairs"),
            1,
        ),
        "-o": Flag(
            "rescaling of the loss, 2 for margins",
            only([2], "SVM^rank itself has margin rescaling only"),
            2,
        ),
        "-l": Flag(
            "loss: 1 counts swapped pairs, 2 their share of each query",
            only([1, 2], "SVM^rank itself knows 1, swapped pairs, and 2, their share"),
            1,
        ),
        "-w": Flag(
            "algorithm, 0 to 4",
            only(range(5), "only the algorithms 0 to 4 have the optimum of the problem"),
            unused=True,
        ),
        "-e": Flag("tolerance, relative to the largest loss", positive, 0.001),
        **{letter: Flag(HOW, number, unused=True) for letter in OPTIMISER},
        "-t": Flag("kernel, 0 for linear", only([0], LINEAR_ONLY), 0),
        **{
            letter: Flag("parameter of kernels that are not linear", unused=True)
            for letter in KERNEL
        },
        "-a": Flag("file for dual variables", refused="the solver here has none"),
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
