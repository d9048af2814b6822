"""Training on a Dask cluster, for the flag --dask."""

import logging
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from marginrank._utils.optional import require
from marginrank._utils.parameters import Mention, ParameterError
from marginrank.cli.flags.shared import local_workers
from marginrank.cli.support.training import BatchParameters, TrainingTask, warn_of_model, with_seed
from marginrank.fit.linear import seed_from
from marginrank.models.fit_report import report_of

if TYPE_CHECKING:
    from distributed import Client

PATIENCE = "30s"  # time limit for an answer of the scheduler


def train_on_cluster(task: TrainingTask, parameters: BatchParameters, where: str) -> None:
    """Train a model on a Dask cluster, write the model and print the summary.

    `where` is the value of --dask: the address of a scheduler, or "local[N]".
    """
    require("dask.dataframe", "dask")
    random_state, verbose = task.training.random_state, task.training.verbose
    with _connecting(where) as client:
        from marginrank.dask.clusters import count_workers
        from marginrank.dask.fit import fit_on_dask, progress_on_dask
        from marginrank.dask.loading import load_parts

        with task.phases.phase("load", ", ".join(task.files)):
            loaded = load_parts(client, list(task.files))
        held_out = task.open_valid(loaded.n_features, loaded.feature_names)
        progress = progress_on_dask(client, loaded, parameters.tol)
        with task.phases.phase("solve"), task.phases.streaming(verbose, progress) as watch:
            model = fit_on_dask(
                client, loaded, parameters, seed=seed_from(random_state), **watch._asdict()
            )
        warn_of_model(model, parameters)
        n_workers = count_workers(client) if report_of(model).error is None else 0
    model = with_seed(model, random_state)
    task.write(model)
    counts = {
        "documents": loaded.n_documents,
        "queries": loaded.n_queries,
        "features": loaded.n_features,
        "pairs": report_of(model).n_pairs,
    }
    cluster = {"scheduler": where, "workers": n_workers, "parts": len(loaded.facts)}
    task.report(model, held_out, counts, dask=cluster)


@contextmanager
def _connecting(where: str) -> "Iterator[Client]":
    distributed = require("distributed", "dask")
    # After Ctrl-C, Dask tasks may still run; asyncio would log an error for each of them.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    n_workers = local_workers(where)
    with ExitStack() as stack:
        if n_workers is not None:
            with _ignoring_interrupts():
                cluster: Any = stack.enter_context(
                    distributed.LocalCluster(
                        n_workers=n_workers,
                        threads_per_worker=1,
                        processes=True,
                        dashboard_address=None,
                        silence_logs=logging.CRITICAL,
                    )
                )
        else:
            cluster = where
        try:
            client = stack.enter_context(distributed.Client(cluster, timeout=PATIENCE))
        except (OSError, ValueError) as error:
            raise ParameterError(
                Mention("dask", where),
                ": no scheduler answers there; start one with: dask scheduler, and workers with: "
                "dask worker ADDRESS.",
            ) from error
        yield client


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Context manager: processes that are started in the with block ignore Ctrl-C.

    The terminal sends Ctrl-C to all processes, but workers must live until the fit has ended.
    """
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
