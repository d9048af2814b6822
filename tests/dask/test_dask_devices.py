"""Workers that compute with PyTorch: with several GPUs, there is one worker for each."""

import pickle

import numpy as np
import pytest
import torch
from collections_of import as_data

from marginrank import RankingData, RankSVM, SparseRankSVM, make_ranking
from marginrank.dask import DaskRankSVM, DaskSparseRankSVM
from marginrank.dask.problems import Problem
from marginrank.fit.inputs import choose_pairs
from marginrank.objective.losses import LOSSES

X, Y, QID = make_ranking(30, 20, 6, random_state=0)
CHUNKS = (200, 160, 240)


@pytest.mark.parametrize(
    ("on_workers", "local"),
    [
        (DaskRankSVM(C=0.01, device="cpu"), RankSVM(C=0.01)),
        (DaskRankSVM(C=0.01, loss="hinge", device="cpu"), RankSVM(C=0.01, loss="hinge")),
        (DaskSparseRankSVM(radius=0.3, device="cpu"), SparseRankSVM(radius=0.3)),
    ],
    ids=["smooth", "hinge", "sparse"],
)
def test_the_optimum_is_that_of_one_machine(client, on_workers, local):
    found = on_workers.fit(**as_data(CHUNKS, X, Y, QID), client=client)
    expected = local.fit(X, Y, qid=QID)
    assert found.objective_ == pytest.approx(expected.objective_, rel=2e-6)
    assert found.gap_ <= 1e-6 * found.objective_


def test_a_card_that_workers_do_not_have_is_refused(client):
    with pytest.raises(ValueError, match="device='cuda:99' does not exist"):
        DaskRankSVM(device="cuda:99").fit(**as_data(CHUNKS, X, Y, QID), client=client)


def test_states_and_problems_travel():
    """What Dask moves or spills computes the same where it arrives."""
    data = RankingData(X, Y, QID)
    loss = LOSSES["huber"]
    problem = Problem(data, choose_pairs(data, loss).pairs, loss, device="cpu")
    w, v = np.random.default_rng(0).normal(size=(2, 6))
    here = problem.kernels(loss)
    state = here.design.evaluate(here.loss, w, None).state
    product, scores = here.design.hess_vec(here.loss, state, v)
    arrived, there = pickle.loads(pickle.dumps((problem, state)))
    assert len(pickle.dumps(state)) < 16 * len(Y) + 2000  # scores alone
    kernels = arrived.kernels(loss)
    again, scores_again = kernels.design.hess_vec(kernels.loss, there, v)
    np.testing.assert_array_equal(again, product)
    assert torch.equal(scores_again, scores)
