"""Models and scores, for the programs of both families."""

import warnings
from typing import TYPE_CHECKING, Any

from marginrank.cli._checks import check_files, check_writable
from marginrank.cli._files import write_text
from marginrank.cli._streams import write_out
from marginrank.cli.compat._arguments import Given

if TYPE_CHECKING:
    from marginrank.data import RankingData
    from marginrank.models import LinearModel
    from marginrank.training.minimisation import Fit


def tell_unused(given: Given) -> None:
    """Name the flags that have no effect."""
    if given.unused:
        write_out(f"Without effect on the result: {', '.join(given.unused)}\n")


def fitted(fit: "Fit", told: bool) -> "LinearModel":
    """Return the weights of a fit, and tell how it ended."""
    from marginrank.models import LinearModel
    from marginrank.solvers import StopReason
    from marginrank.training.linear import relative_distance
    from marginrank.training.peers import CLOSE

    result = fit.result
    if result.stop is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    distance = relative_distance(result)
    if distance > CLOSE:
        warnings.warn(
            f"the fit is up to {distance:.1e} above the optimum, relatively, where {CLOSE:g} was "
            "wanted; scale the features.",
            stacklevel=1,
        )
    if told:
        write_out(
            f"Objective value: {result.objective:.10g}\n"
            f"Upper bound on duality gap: {result.gap:.3g}\n"
            f"Iterations: {result.n_iter}, pairs: {fit.n_pairs}\n"
        )
    return LinearModel(result.w, {})


def write_scores(
    examples: str, model_file: str, output: str, *, dtype: str, digits: str
) -> tuple["RankingData", Any]:
    """Write the score of each document, a line each, and return documents and scores."""
    from marginrank.data.formats.letor import load_letor
    from marginrank.models import read_model
    from marginrank.training.peers import scores_by

    check_writable(output)
    check_files([examples, model_file], [output])
    model = read_model(model_file)
    data = load_letor(examples, dtype=dtype)
    scores = scores_by(model.coef, data)
    write_text(output, "".join(f"{score:{digits}}\n" for score in scores.tolist()))
    return data, scores
