"""Models and scores, for the programs of both families."""

import warnings
from typing import TYPE_CHECKING, Any

from marginrank.cli.commands.compat._arguments import Given
from marginrank.cli.support.checks import check_files, check_writable
from marginrank.cli.support.files import write_text
from marginrank.cli.support.streams import write_out

if TYPE_CHECKING:
    from marginrank.data import RankingData
    from marginrank.models import LinearModel


def tell_unused(given: Given) -> None:
    """Name the flags that have no effect."""
    if given.unused:
        write_out(f"Without effect on the result: {', '.join(given.unused)}\n")


def only_weights(model: "LinearModel", told: bool) -> "LinearModel":
    """Return the weights of a fit without anything else, and tell how it ended."""
    from marginrank.fit.peers import CLOSE
    from marginrank.models import LinearModel
    from marginrank.models.fit_report import StopReason, relative_distance, report_of

    report = report_of(model)
    if report.stop_reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    distance = relative_distance(report)
    if distance > CLOSE:
        warnings.warn(
            f"the fit is up to {distance:.1e} above the optimum, relatively, where {CLOSE:g} was "
            "wanted; scale the features.",
            stacklevel=1,
        )
    if told:
        write_out(
            f"Objective value: {report.objective:.10g}\n"
            f"Upper bound on duality gap: {report.gap:.3g}\n"
            f"Iterations: {report.n_iter}, pairs: {report.n_pairs}\n"
        )
    return LinearModel(model.coef, {})


def write_scores(
    examples: str, model_file: str, output: str, *, dtype: str, digits: str
) -> tuple["RankingData", Any]:
    """Write the score of each document, a line each, and return documents and scores."""
    from marginrank.fit.peers import scores_by
    from marginrank.io.letor import load_letor
    from marginrank.models import read_model

    check_writable(output)
    check_files([examples, model_file], [output])
    model = read_model(model_file)
    data = load_letor(examples, dtype=dtype)
    scores = scores_by(model.coef, data)
    write_text(output, "".join(f"{score:{digits}}\n" for score in scores.tolist()))
    return data, scores
