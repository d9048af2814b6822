"""A cluster of real worker processes, which the tests of this folder share."""

import dask
import pytest
from distributed import Client, LocalCluster

# A cluster gives up a worker that its nanny does not restart in time: 15 seconds by default, in
# which a busy machine does not start a process that imports Dask.
dask.config.set({"distributed.deploy.lost-worker-timeout": "300s"})


@pytest.fixture(scope="session")
def client():
    with start_cluster(2, processes=True) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture
def new_cluster():
    """Return a function that starts a cluster of its own for a test that breaks it.

    Its workers are threads, which start in no time, unless a test kills their processes.
    """
    clusters = []

    def start(n_workers, *, processes=False):
        clusters.append(start_cluster(n_workers, processes=processes))
        clients.append(Client(clusters[-1]))
        return clients[-1]

    clients = []
    yield start
    for client in clients:
        client.close()
    for cluster in clusters:
        cluster.close()


def start_cluster(n_workers, *, processes):
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=processes,
        protocol="tcp",
        dashboard_address=":0",
    )
