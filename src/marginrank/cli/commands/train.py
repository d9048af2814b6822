"""The command ``marginrank train``: train a linear model."""

from marginrank.cli.flags.training import TrainFlags
from marginrank.cli.support.data import DataRequest, data_summary
from marginrank.cli.support.progress import Phases
from marginrank.cli.support.training import TrainingTask
from marginrank.data.pair_lists import check_pairs
from marginrank.fit.linear import Parameters
from marginrank.io.pair_text import load_pairs

# Pairs of flags that exclude each other.
CONFLICTS = (
    ("C", "lam"),
    *((name, "pairs") for name in ("objective", "pair_selection", "pair_cost", "margin")),
    *((name, "memory_limit") for name in ("device", "objective")),
    *((name, "dask") for name in ("memory_limit", "pairs", "objective")),
)


def run(flags: TrainFlags, phases: Phases) -> None:
    """Train a linear model and write it to a file."""
    task = TrainingTask(flags.data, flags.reading, flags.validation, flags.training, phases)
    task.check_flags(conflicts=CONFLICTS)
    parameters = task.prepare(
        lambda: task.parameters_of(Parameters, flags.parameters, flags.device), inputs=[flags.pairs]
    )
    if flags.resources.dask is not None:
        from marginrank.cli.support.cluster import train_on_cluster

        train_on_cluster(task, parameters, flags.resources.dask)
        return
    pairs = request = None
    if flags.pairs is not None:
        with phases.phase("read", flags.pairs):
            pairs = load_pairs(flags.pairs)
        request = DataRequest(labels=False, queries=False)
    opened = task.open(request, flags.resources.memory_limit)
    data = opened.data
    listed = None if pairs is None else check_pairs(pairs, None, data.n_documents)
    held_out = task.open_valid(data.n_features, data.feature_names)
    model = task.fit(opened, parameters, listed)
    counts = data_summary(data)
    if listed is not None:
        counts["pairs"] = len(listed)
    task.write(model)
    task.report(model, held_out, counts, memory_limit=opened.memory_limit)
