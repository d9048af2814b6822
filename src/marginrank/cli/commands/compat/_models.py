"""Models and scores of both families of programs."""

from typing import Any

from marginrank.cli.support.checks import check_files, check_writable
from marginrank.cli.support.files import write_text
from marginrank.cli.support.streams import write_out
from marginrank.cli.support.training import warn_of
from marginrank.data import RankingData
from marginrank.fit.peers import CLOSE, scores_by
from marginrank.io.letor import load_letor
from marginrank.models import LinearModel, read_model
from marginrank.models.fit_report import StopReason, relative_distance, report_of


def only_weights(model: LinearModel, verbose: bool) -> LinearModel:
    """Return a model with the weights only, print the result of the fit, and warn."""
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


def write_scores(
    examples: str, model_file: str, output: str, *, dtype: str, digits: str
) -> tuple[RankingData, Any]:
    """Write one score per line, and return data and scores."""
    check_writable(output)
    check_files([examples, model_file], [output])
    model = read_model(model_file)
    data = load_letor(examples, dtype=dtype)
    scores = scores_by(model.coef, data)
    write_text(output, "".join(f"{score:{digits}}\n" for score in scores.tolist()))
    return data, scores
