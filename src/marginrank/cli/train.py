"""marginrank train."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from marginrank.cli import _models
from marginrank.cli._data import Wanted, open_data
from marginrank.cli._files import check_found, check_writable, refuse_stdin_twice
from marginrank.cli._metrics import find_metrics, measure
from marginrank.cli._options import DataFiles, Discount, Gain, Json, Metrics, Reading, reads_data
from marginrank.cli._output import print_json
from marginrank.cli._progress import Phases
from marginrank.cli._training import fit, fit_summary, print_fit

if TYPE_CHECKING:
    from marginrank import RankingData
    from marginrank.data.pairs import PairList

EXAMPLE = """\
train train.txt --model model.json -C 0.01 --valid valid.txt
train part1.txt.gz part2.txt.gz --model model.json --json
train clicks.txt --pairs clicks.pairs --model model.json"""


@reads_data
def train(
    data: DataFiles,
    reading: Reading,
    model: Annotated[str, typer.Option(help="File to write the model to.", show_default=False)],
    pairs: Annotated[
        str | None,
        typer.Option(
            help="File of preference pairs to learn from, instead of labels: on each line the "
            "preferred row, the other row and, optionally, a weight; rows of DATA count from 0."
        ),
    ] = None,
    valid: Annotated[str | None, typer.Option(help="Data to evaluate the model on.")] = None,
    valid_group: Annotated[
        str | None, typer.Option(help="File of query sizes for --valid, as --group for DATA.")
    ] = None,
    metrics: Metrics = None,
    gain: Gain = None,
    discount: Discount = None,
    C: Annotated[float, typer.Option("--C", "-C", help="Weight of the loss.")] = 1.0,
    lam: Annotated[
        float | None, typer.Option(help="Weight of ‖w‖² instead of that of the loss: C is 1 / 2λ.")
    ] = None,
    loss: Annotated[
        str, typer.Option(help="squared_hinge, hinge, huber or logistic.")
    ] = "squared_hinge",
    solver: Annotated[
        str, typer.Option(help="auto, newton, tron, or for hinge smoothing, ocas or bmrm.")
    ] = "auto",
    tol: Annotated[float, typer.Option(help="Relative distance to the optimum.")] = 1e-6,
    max_iter: Annotated[int, typer.Option(help="Limit on the iterations.")] = 1000,
    pair_selection: Annotated[str, typer.Option(help="all or adjacent.")] = "all",
    pair_cost: Annotated[
        str | None, typer.Option(help="What multiplies the loss of a pair: gain or ndcg.")
    ] = None,
    margin: Annotated[
        str, typer.Option(help="Margin of a pair: unit, or a difference of label or gain.")
    ] = "unit",
    normalization: Annotated[str, typer.Option(help="none, pairs or query.")] = "none",
    random_state: Annotated[int, typer.Option(help="Seed of the solver's samples.")] = 0,
    verbose: Annotated[bool, typer.Option("--verbose", help="Print each iteration.")] = False,
    json: Json = False,
) -> None:
    """Train a linear RankSVM and write it to a file.

    The flags are named as the parameters of marginrank.RankSVM and marginrank.load_letor.
    """
    check_writable(model)
    refuse_stdin_twice([*data, pairs, valid])
    if valid is None and valid_group is not None:
        raise ValueError("--valid-group is given, but no --valid.")
    phases = Phases()
    with phases.importing():
        from marginrank.data.pairs import check_pairs
        from marginrank.fitting import Parameters
        from marginrank.models import write_model
        from marginrank.objective import refuse_selection

        chosen = find_metrics(metrics, gain=gain, discount=discount)
        parameters = Parameters(
            C=C,
            lam=lam,
            loss=loss,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            pair_selection=pair_selection,
            pair_cost=pair_cost,
            margin=margin,
            normalization=normalization,
            n_jobs=reading.n_jobs,
        )
        parameters.check()
        if pairs is not None:
            refuse_selection(pair_selection)
    check_found([*data, pairs, reading.group, valid, valid_group])
    listed = _open_pairs(pairs, phases)
    wanted = Wanted(labels=listed is None, queries=listed is None)
    documents = open_data(data, reading, phases, wanted)
    if listed is not None:
        listed = check_pairs(listed, None, documents.n_documents)
    held_out = _open_valid(valid, documents, replace(reading, group=valid_group), phases)
    fitted = fit(
        documents, parameters, phases, pairs=listed, random_state=random_state, verbose=verbose
    )
    with phases.phase("write", model):
        write_model(fitted, model)
    result = fit_summary(fitted, documents) | {"model": model}
    if listed is not None:
        result["data"]["pairs"] = len(listed)
    if held_out is not None:
        with phases.phase("evaluate", valid):
            scores = _models.scores(fitted, held_out)
            result["valid"] = measure(chosen, held_out, scores, skip=metrics is None)
    result["seconds"] = phases.seconds
    reason = fitted.training.stop_reason.value if fitted.training else ""
    print_json(result) if json else print_fit(result, reason)


def _open_pairs(path: str | None, phases: Phases) -> "PairList | None":
    if path is None:
        return None
    from marginrank import load_pairs

    with phases.phase("read", path):
        return load_pairs(path)


def _open_valid(
    path: str | None, data: "RankingData", reading: Reading, phases: Phases
) -> "RankingData | None":
    """Read the validation data before the training, so that an error costs nothing."""
    if path is None:
        return None
    wanted = Wanted(data.n_features, data.feature_names)
    return open_data([path], reading, phases, wanted)
