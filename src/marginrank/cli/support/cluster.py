"""Learning on a Dask cluster: --dask."""

from typing import TYPE_CHECKING

from marginrank._utils.optional import require
from marginrank.cli.support.dask_client import connecting
from marginrank.cli.support.data import Wanted
from marginrank.cli.support.task import Task
from marginrank.cli.support.training import warn_of_model, with_seed

if TYPE_CHECKING:
    from distributed import Client

    from marginrank.dask.fit import AnyParameters
    from marginrank.dask.loading import LoadedParts
    from marginrank.models import LinearModel


def learn_on_cluster(task: Task, parameters: "AnyParameters", where: str) -> None:
    """Learn from stores that the workers of a cluster read; write and tell what came out."""
    require("dask.dataframe", "dask")
    with connecting(where) as client:
        from marginrank.dask.clusters import count_workers
        from marginrank.dask.loading import load_parts
        from marginrank.models.fit_report import report_of

        with task.phases.phase("load", ", ".join(task.files)):
            loaded = load_parts(client, list(task.files))
        held_out = task.open_valid(Wanted(loaded.n_features, loaded.feature_names))
        model = _fit(client, loaded, parameters, task)
        n_workers = count_workers(client) if report_of(model).error is None else 0
    task.keep(model)
    counts = {
        "documents": loaded.n_documents,
        "queries": loaded.n_queries,
        "features": loaded.n_features,
        "pairs": report_of(model).n_pairs,
    }
    cluster = {"scheduler": where, "workers": n_workers, "parts": len(loaded.facts)}
    task.tell(task.summary(model, held_out, counts, dask=cluster), model)


def _fit(
    client: "Client", loaded: "LoadedParts", parameters: "AnyParameters", task: Task
) -> "LinearModel":
    from marginrank.dask.fit import fit_on_dask, progress_on_dask
    from marginrank.fit.linear import seed_from

    random_state, verbose = task.training.random_state, task.training.verbose
    progress = progress_on_dask(client, loaded, parameters.tol)
    with task.phases.phase("solve"), task.phases.streaming(verbose, progress) as watch:
        model = fit_on_dask(
            client, loaded, parameters, seed=seed_from(random_state), **watch._asdict()
        )
    warn_of_model(model, parameters)
    return with_seed(model, random_state)
