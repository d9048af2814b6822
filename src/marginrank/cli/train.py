"""marginrank train."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginrank.cli import _models
from marginrank.cli._data import Wanted, data_summary, open_data
from marginrank.cli._files import check_found, check_writable, refuse_stdin_twice
from marginrank.cli._metrics import find_metrics, measure
from marginrank.cli._online import refuse_flags, train_online
from marginrank.cli._options import DataFiles, Discount, Gain, Json, Metrics, Reading, reads_data
from marginrank.cli._output import print_json
from marginrank.cli._progress import Phases
from marginrank.cli._training import fit, fit_summary, print_fit

if TYPE_CHECKING:
    from marginrank import RankingData

# Values of flags of a batch fit that say nothing about one online.
SOLVER, PAIRS, TOL, MAX_ITER = "newton", "all", 1e-6, 1000

EXAMPLE = """\
train train.txt --model model.json -C 0.01 --valid valid.txt
train part1.txt.gz part2.txt.gz --model model.json --json
train larger-than-memory.txt --model model.json --online"""


@reads_data
def train(
    data: DataFiles,
    reading: Reading,
    model: Annotated[str, typer.Option(help="File to write the model to.", show_default=False)],
    valid: Annotated[str | None, typer.Option(help="Data to evaluate the model on.")] = None,
    valid_group: Annotated[
        str | None, typer.Option(help="File of query sizes for --valid, as --group for DATA.")
    ] = None,
    metrics: Metrics = None,
    gain: Gain = None,
    discount: Discount = None,
    C: Annotated[float, typer.Option("--C", "-C", help="Weight of the loss.")] = 1.0,
    loss: Annotated[str, typer.Option(help="squared_hinge or huber.")] = "squared_hinge",
    solver: Annotated[str, typer.Option(help="newton or tron.")] = SOLVER,
    tol: Annotated[float, typer.Option(help="Relative distance to the optimum.")] = TOL,
    max_iter: Annotated[int, typer.Option(help="Limit on the iterations.")] = MAX_ITER,
    pair_selection: Annotated[str, typer.Option(help="all or adjacent.")] = PAIRS,
    normalization: Annotated[str, typer.Option(help="none, pairs or query.")] = "none",
    random_state: Annotated[int, typer.Option(help="Seed of samples and orders.")] = 0,
    online: Annotated[
        bool,
        typer.Option(
            "--online",
            help="Learn by stochastic gradients from text in chunks, or from a store: "
            "marginrank.SGDRankSVM. --tol is then 1e-3 and --max-iter 100 by default.",
        ),
    ] = False,
    method: Annotated[
        str | None, typer.Option(help="With --online: query (the default) or pair.")
    ] = None,
    early_stopping: Annotated[
        bool,
        typer.Option("--early-stopping", help="With --online: stop by the first of --metrics."),
    ] = False,
    chunk_documents: Annotated[
        int | None, typer.Option(help="With --online: documents of text in memory, 65536 or so.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Print each iteration.")] = False,
    json: Json = False,
) -> None:
    """Train a linear RankSVM and write it to a file.

    The flags are named as the parameters of marginrank.RankSVM and marginrank.load_letor.
    """
    if online:
        batch_only = {"solver": solver != SOLVER, "pair_selection": pair_selection != PAIRS}
        refuse_flags("has no meaning with", **batch_only)
    else:
        online_only = {"method": method, "early_stopping": early_stopping}
        refuse_flags("needs", **online_only, chunk_documents=chunk_documents is not None)
    if early_stopping and valid is None:
        raise ValueError("--early-stopping is given, but no --valid.")
    if early_stopping and (gain or discount):
        raise ValueError("--early-stopping knows no --gain and --discount; drop them.")
    check_writable(model)
    refuse_stdin_twice([*data, valid])
    if valid is None and valid_group is not None:
        raise ValueError("--valid-group is given, but no --valid.")
    phases = Phases()
    with phases.importing():
        from marginrank.fitting import Parameters
        from marginrank.models import write_model
        from marginrank.online import OnlineParameters

        chosen = find_metrics(metrics, gain=gain, discount=discount)
        shared: dict[str, Any] = {
            "C": C,
            "loss": loss,
            "normalization": normalization,
            "n_jobs": reading.n_jobs,
        }
        limits: dict[str, Any] = {"tol": tol, "max_iter": max_iter}
        parameters: Parameters | OnlineParameters
        if online:
            chosen_here = {"method": method, "scoring": metrics and metrics.split(",")[0]}
            shared |= {name: value for name, value in chosen_here.items() if value}
            usual = {"tol": TOL, "max_iter": MAX_ITER}
            shared |= {name: limits[name] for name in limits if limits[name] != usual[name]}
            parameters = OnlineParameters(early_stopping=early_stopping, **shared)
        else:
            parameters = Parameters(
                solver=solver, pair_selection=pair_selection, **shared, **limits
            )
        parameters.check()
    check_found([*data, reading.group, valid, valid_group])

    def open_valid(wanted: Wanted) -> "RankingData | None":
        """Read the validation data before the training, so that an error costs nothing."""
        if valid is None:
            return None
        return open_data([valid], replace(reading, group=valid_group), phases, wanted)

    if isinstance(parameters, OnlineParameters):
        fitted, held_out, counts = train_online(
            data,
            reading,
            parameters,
            open_valid,
            phases,
            chunk_documents=chunk_documents,
            random_state=random_state,
            verbose=verbose,
        )
    else:
        documents = open_data(data, reading, phases)
        held_out = open_valid(Wanted(documents.n_features, documents.feature_names))
        fitted = fit(documents, parameters, phases, random_state=random_state, verbose=verbose)
        counts = data_summary(documents)
    with phases.phase("write", model):
        write_model(fitted, model)
    result = fit_summary(fitted, counts) | {"model": model}
    if held_out is not None:
        with phases.phase("evaluate", valid):
            scores = _models.scores(fitted, held_out)
            result["valid"] = measure(chosen, held_out, scores, skip=metrics is None)
    result["seconds"] = phases.seconds
    reason = fitted.training.stop_reason.value if fitted.training else ""
    print_json(result) if json else print_fit(result, reason)
