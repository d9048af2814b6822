"""marginrank train."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from marginrank.cli import _models
from marginrank.cli._checks import (
    check_conflicts,
    check_files,
    check_flags_of_data,
    check_needs,
    check_seed,
    check_writable,
    refuse_stdin_twice,
)
from marginrank.cli._data import Wanted, data_summary, kind_of, open_data
from marginrank.cli._files import naming
from marginrank.cli._metrics import Metric, find_metrics, measure
from marginrank.cli._online import train_online
from marginrank.cli._options import DataFiles, Discount, Gain, Json, Metrics, Reading, reads_data
from marginrank.cli._output import print_json
from marginrank.cli._plots import check_plot
from marginrank.cli._progress import Phases
from marginrank.cli._sparse_path import (
    best_parameters,
    describe_path,
    plot,
    print_path,
    walk_path,
)
from marginrank.cli._ties import decided_by_ties, print_ties
from marginrank.cli._training import fit, fit_summary, print_fit

if TYPE_CHECKING:
    from marginrank import RankingData
    from marginrank.data.pair_lists import PairList
    from marginrank.models import LinearModel
    from marginrank.training.path import SparsePath

EXAMPLE = """\
train train.txt --model model.json -C 0.01 --valid valid.txt
train part1.txt.gz part2.txt.gz --model model.json --json
train clicks.txt --pairs clicks.pairs --model model.json
train train.txt --model model.json --l1 --radius 4
train train.txt --model model.json --l1 --path 50 --valid valid.txt --plot path.png
train larger-than-memory.txt --model model.json --online"""

# A flag, and another that it says nothing without.
NEEDS = (
    *((name, "online") for name in ("method", "early_stopping", "chunk_documents")),
    *((name, "l1") for name in ("radius", "l1_ratio", "positive", "path")),
    *((name, "path") for name in ("parameter", "plot")),
    *((name, "valid") for name in ("valid_group", "metrics", "gain", "discount")),
    *((name, "valid") for name in ("path", "early_stopping")),
)
# A flag, and another that leaves nothing for it to say.
CONFLICTS = (
    *((name, "online") for name in ("pairs", "lam", "solver", "pair_selection", "pair_cost")),
    ("margin", "online"),
    *((name, "l1") for name in ("pairs", "lam", "margin")),
    *((name, "path") for name in ("C", "radius", "solver")),
    *(("C", other) for other in ("lam", "radius")),
    *((name, "pairs") for name in ("pair_cost", "margin")),
    *((name, "early_stopping") for name in ("gain", "discount")),
)
LONGEST_PATH = 10_000


class Fitted(NamedTuple):
    """What came out of training, and the data that it is judged on."""

    model: "LinearModel"
    held_out: "RankingData | None"
    counts: dict[str, int]
    path: "SparsePath | None" = None


@reads_data
def train(
    data: DataFiles,
    reading: Reading,
    model: Annotated[str, typer.Option(help="File to write the model to.", show_default=False)],
    pairs: Annotated[
        str | None,
        typer.Option(
            help="File of preferred and other row of each pair, counted from 0, and its weight if "
            "it has one, to learn from instead of labels."
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
        float | None,
        typer.Option(help="Weight of the squared norm of w, instead of C, which is 1 / (2 lam)."),
    ] = None,
    loss: Annotated[
        str, typer.Option(help="squared_hinge, hinge, huber or logistic.")
    ] = "squared_hinge",
    solver: Annotated[
        str | None,
        typer.Option(
            help="newton, tron; for hinge smoothing, ocas, bmrm; with --l1 proximal_newton, "
            "fenchel, truncated_gradient. auto, the fastest, by default."
        ),
    ] = None,
    tol: Annotated[
        float | None,
        typer.Option(
            help="Relative distance to the optimum: 1e-6, or 1e-3 with --online, by default."
        ),
    ] = None,
    max_iter: Annotated[
        int | None,
        typer.Option(help="Limit on the iterations: 1000, or 100 with --online, by default."),
    ] = None,
    pair_selection: Annotated[str, typer.Option(help="all or adjacent.")] = "all",
    pair_cost: Annotated[
        str | None, typer.Option(help="What multiplies the loss of a pair: gain or ndcg.")
    ] = None,
    margin: Annotated[
        str, typer.Option(help="Margin of a pair: unit, or a difference of label or gain.")
    ] = "unit",
    normalization: Annotated[
        str | None,
        typer.Option(help="none, pairs or query: none, or pairs with --l1, by default."),
    ] = None,
    random_state: Annotated[int, typer.Option(help="Seed of samples and orders.")] = 0,
    l1: Annotated[
        bool,
        typer.Option(
            "--l1",
            help="Learn a sparse model: marginrank.SparseRankSVM.",
        ),
    ] = False,
    radius: Annotated[
        float | None, typer.Option(help="With --l1: bound on the l1 norm, instead of C.")
    ] = None,
    l1_ratio: Annotated[
        float, typer.Option(help="With --l1: share of the l1 norm in the penalty.")
    ] = 1.0,
    positive: Annotated[
        bool, typer.Option("--positive", help="With --l1: no weight may be negative.")
    ] = False,
    path: Annotated[
        int | None,
        typer.Option(
            help="With --l1: fit that many values of C or the radius, each to 1e-4, and keep the "
            "one that is best on --valid by the first of --metrics, ndcg@10 by default."
        ),
    ] = None,
    parameter: Annotated[str, typer.Option(help="With --path: C or radius.")] = "C",
    plot: Annotated[
        str | None, typer.Option(help="With --path: file to draw it to, such as path.png.")
    ] = None,
    online: Annotated[
        bool,
        typer.Option(
            "--online",
            help="Learn by stochastic gradients from text in chunks, or from a store: "
            "marginrank.SGDRankSVM.",
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
    """Train a linear model and write it to a file.

    The flags are named as the parameters of marginrank.RankSVM and marginrank.load_letor; those of
    --l1 and --online as the ones of marginrank.SparseRankSVM and marginrank.SGDRankSVM.
    """
    _train(dict(locals()))


def _train(flags: dict[str, Any]) -> None:
    """Check the flags, read, fit, write and tell."""
    given = flags["reading"].given
    if flags["solver"] == "auto":
        flags["solver"] = None
        given -= {"solver"}
    _refuse_flags(flags, given)
    model, valid, metrics = flags["model"], flags["valid"], flags["metrics"]
    inputs = [*flags["data"], flags["pairs"], valid]
    check_writable(model)
    check_plot(flags["plot"])
    refuse_stdin_twice(inputs)
    phases = Phases()
    with phases.importing():
        from marginrank.models import write_model

        chosen = find_metrics(metrics, gain=flags["gain"], discount=flags["discount"])
        parameters = _parameters(flags)
        parameters.check()
    groups = flags["reading"].group, flags["valid_group"]
    check_files([*inputs, *groups], [model, flags["plot"]])
    learn = _fit_online if flags["online"] else _fit_batch
    fitted = learn(flags, parameters, phases)
    with phases.phase("write", model), naming(model):
        write_model(fitted.model, model)
    if flags["plot"] is not None and fitted.path is not None:
        with phases.phase("plot", flags["plot"]):
            plot(fitted.path, flags["plot"])
    result = fit_summary(fitted.model, fitted.counts) | {"model": model}
    if fitted.path is not None:
        result["path"] = describe_path(fitted.path)
    if fitted.held_out is not None:
        with phases.phase("evaluate", valid):
            scores = _models.scores(fitted.model, fitted.held_out, flags["reading"].n_jobs)
            values = measure(chosen, fitted.held_out, scores, skip=metrics is None)
            result["valid"] = values
            result["ties"] = decided_by_ties(chosen, values, fitted.held_out, scores)
    result["seconds"] = phases.seconds
    print_json(result) if flags["json"] else _print(result, fitted)


def _print(result: dict[str, Any], fitted: Fitted) -> None:
    if "path" in result:
        print_path(result["path"])
    training = fitted.model.training
    print_fit(result, training.stop_reason.value if training else "")
    print_ties(result.get("ties", {}))


def _fit_online(flags: dict[str, Any], parameters: Any, phases: Phases) -> Fitted:
    return Fitted(
        *train_online(
            flags["data"],
            flags["reading"],
            parameters,
            lambda wanted: _open_valid(flags, wanted, phases),
            phases,
            chunk_documents=flags["chunk_documents"],
            random_state=flags["random_state"],
            verbose=flags["verbose"],
        )
    )


def _fit_batch(flags: dict[str, Any], parameters: Any, phases: Phases) -> Fitted:
    documents, listed = _open_training(flags["data"], flags["pairs"], flags["reading"], phases)
    wanted = Wanted(documents.n_features, documents.feature_names)
    held_out = _open_valid(flags, wanted, phases)
    path = None
    if flags["path"] is not None and held_out is not None:
        path = walk_path(
            documents,
            held_out,
            parameters,
            _first_metric(flags),
            phases,
            n_points=flags["path"],
            parameter=flags["parameter"],
            random_state=flags["random_state"],
            verbose=flags["verbose"],
        )
        parameters = best_parameters(path, parameters)
    fitted = fit(
        documents,
        parameters,
        phases,
        pairs=listed,
        random_state=flags["random_state"],
        verbose=flags["verbose"],
    )
    counts = data_summary(documents)
    if listed is not None:
        counts["pairs"] = len(listed)
    return Fitted(fitted, held_out, counts, path)


def _first_metric(flags: dict[str, Any]) -> Metric:
    """Return what models are chosen by."""
    names = flags["metrics"] or "ndcg@10"
    chosen = find_metrics(names, gain=flags["gain"], discount=flags["discount"])
    return next(iter(chosen.values()))


def _open_valid(flags: dict[str, Any], wanted: Wanted, phases: Phases) -> "RankingData | None":
    """Read the validation data before the training, so that an error costs nothing."""
    if flags["valid"] is None:
        return None
    reading = replace(flags["reading"], group=flags["valid_group"])
    return open_data([flags["valid"]], reading, phases, wanted)


def _refuse_flags(flags: dict[str, Any], given: frozenset[str]) -> None:
    """Refuse flags of another learner or of other data, and such that need another flag."""
    if flags["online"] and flags["l1"]:
        raise ValueError("--l1 and --online are two learners; give one of them.")
    check_conflicts(given, CONFLICTS)
    check_needs(given, NEEDS)
    valid = [] if flags["valid"] is None else [flags["valid"]]
    check_flags_of_data(given & {"group"}, flags["data"])
    check_flags_of_data(given - {"group"}, [*flags["data"], *valid])
    if "valid_group" in given and kind_of(flags["valid"]) != "text":
        raise ValueError(f"--valid-group is for text, but {flags['valid']} is none; drop it.")
    check_seed(flags["random_state"])
    if flags["path"] is not None:
        _check_path(flags)


def _check_path(flags: dict[str, Any]) -> None:
    from marginrank._base.parameters import check_choice, check_integer

    if check_integer("path", flags["path"], at_least=1) > LONGEST_PATH:
        raise ValueError(f"path={flags['path']} must be at most {LONGEST_PATH}.")
    check_choice("parameter", flags["parameter"], ("C", "radius"))
    if flags["parameter"] == "radius" and flags["l1_ratio"] != 1:
        raise ValueError("--l1-ratio mixes penalties, and a radius has none; drop one of them.")
    if flags["l1_ratio"] == 0:
        raise ValueError("--l1-ratio 0 makes no weight zero, so that a path has no start.")


def _parameters(flags: dict[str, Any]) -> Any:
    """Return the parameters of the learner that the flags ask for."""
    from dataclasses import fields

    from marginrank.training.linear import Parameters
    from marginrank.training.online import OnlineParameters
    from marginrank.training.pairs import refuse_selection
    from marginrank.training.sparse import SparseParameters

    kind: Callable[..., Any] = (
        OnlineParameters if flags["online"] else SparseParameters if flags["l1"] else Parameters
    )
    names = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    values = {name: flags[name] for name in names if flags.get(name) is not None}
    values["n_jobs"] = flags["reading"].n_jobs
    if flags["online"] and flags["metrics"]:
        values["scoring"] = flags["metrics"].split(",")[0]
    if flags["pairs"] is not None:
        refuse_selection(flags["pair_selection"])
    return kind(**values)


def _open_training(
    files: list[str], pairs: str | None, reading: Reading, phases: Phases
) -> tuple["RankingData", "PairList | None"]:
    """Read the documents, and the list of pairs if there is one."""
    if pairs is None:
        return open_data(files, reading, phases), None
    from marginrank.data.pair_lists import check_pairs, load_pairs

    with phases.phase("read", pairs):
        listed = load_pairs(pairs)
    documents = open_data(files, reading, phases, Wanted(labels=False, queries=False))
    return documents, check_pairs(listed, None, documents.n_documents)
