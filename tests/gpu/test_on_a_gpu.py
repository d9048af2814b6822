"""Tests that need a GPU: `pytest -m gpu`."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from helpers.torch_problems import both, make_data, relative_error

from marginrank import RankingData, RankSVM, RankSVMCV, SparseRankSVM, make_ranking
from marginrank.fit import inputs
from marginrank.fit.inputs import choose_pairs, matrix_on, objective_on
from marginrank.objective.losses import LOSSES
from marginrank.operators.torch.features import DenseFeatures
from marginrank.operators.torch.fixed_point import Segments, prefix_sums
from marginrank.operators.torch.matrix import TorchMatrix

pytestmark = pytest.mark.gpu

W = np.array([0.5, -0.25, 1.0, 0.75])
V = np.array([1.0, 0.3, -0.7, 0.1])


@pytest.fixture(autouse=True)
def gpu():
    if not torch.cuda.is_available():
        pytest.fail("PyTorch finds no GPU; run -m gpu on a machine that has one.")


def on_gpu(data, loss="squared_hinge", **options):
    chosen = choose_pairs(data, LOSSES[loss], **options)
    return objective_on(data, chosen, matrix=TorchMatrix.of(data, "cuda:0"))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    "layout", [np.asarray, np.float32, sp.csr_array], ids=["f64", "f32", "csr"]
)
@pytest.mark.parametrize("k", [1, 2, 5, 1000, "l"])
def test_values_and_products_are_those_of_the_native_kernels(k, layout, loss):
    data = make_data(k, 20_000, 50, layout=layout)
    native, found = both(data, LOSSES[loss])[0].at(W), on_gpu(data, loss).at(W)
    assert found.value == pytest.approx(native.value, rel=1e-12)
    assert relative_error(found.gradient, native.gradient) < 1e-12
    assert relative_error(found.hess_vec(V)[0], native.hess_vec(V)[0]) < 1e-12


def test_two_runs_have_the_same_bits():
    data = make_data(5, 300_000, 1000, layout=np.float32)
    runs = []
    for _ in range(2):
        point = on_gpu(data, "huber").at(W)
        runs.append((point.value, point.gradient, *point.hess_vec(V)))
    assert runs[0][0] == runs[1][0]
    for a, b in zip(runs[0][1:3], runs[1][1:3], strict=True):
        np.testing.assert_array_equal(a, b)
    assert torch.equal(runs[0][3], runs[1][3])


def test_pair_sums_are_those_of_the_processor_bit_by_bit():
    data = make_data(300, 50_000, 20)
    rng = np.random.default_rng(0)
    scores, u = (torch.as_tensor(rng.normal(size=50_000)) for _ in range(2))
    objectives = both(data, LOSSES["squared_hinge"])[1], on_gpu(data)
    images = []
    for objective, device in zip(objectives, ("cpu", "cuda"), strict=True):
        point = objective.at(W, scores.to(device))
        images.append(point.hess_vec_scores(u.to(device)).cpu())
    assert torch.equal(*images)


def test_prefix_sums_wrap_around():
    values = torch.full((200,), 3.0, dtype=torch.float64, device="cuda")
    segments = Segments.of(torch.arange(0, 201, 5, device="cuda"))
    assert prefix_sums(segments.encode(values).integers).min() < 0
    assert (segments.sum(values) == 15.0).all()


def test_triton_kernels_are_those_of_torch():
    pytest.importorskip("triton")
    from marginrank.operators.torch.triton_features import TritonFeatures

    X = torch.randn(100_003, 136, device="cuda")
    v, z = (torch.randn(n, dtype=torch.float64, device="cuda") for n in (136, 100_003))
    found, expected = TritonFeatures(X), DenseFeatures(X)
    torch.testing.assert_close(found.dot(v), expected.dot(v), rtol=1e-12, atol=1e-12)
    for _ in range(2):
        torch.testing.assert_close(
            found.transpose_dot(z), expected.transpose_dot(z), rtol=1e-11, atol=1e-9
        )
    assert torch.equal(found.transpose_dot(z), found.transpose_dot(z))


def test_a_tensor_is_used_where_it_is():
    X, y, qid = make_ranking(2000, 30, 100, dtype=np.float32, random_state=0)
    tensor = torch.as_tensor(X, device="cuda")
    assert tensor.numel() * 4 >= inputs.SMALL_BYTES
    matrix = matrix_on(RankingData(X, y, qid), None, tensor)
    assert matrix.features.X.data_ptr() == tensor.data_ptr()
    found = RankSVM(C=0.01).fit(tensor, torch.as_tensor(y, device="cuda"), qid=qid)
    expected = RankSVM(C=0.01).fit(X, y, qid=qid)
    assert found.objective_ == pytest.approx(expected.objective_, rel=2e-6)
    assert found.gap_ <= 1e-6 * found.objective_
    scores = found.predict(tensor)
    assert scores.device == tensor.device
    np.testing.assert_allclose(scores.cpu().numpy(), found.predict(X), rtol=1e-12, atol=1e-12)
    labels, queries = (torch.as_tensor(values, device="cuda") for values in (y, qid))
    assert found.score(tensor, labels, qid=queries) == pytest.approx(found.score(X, y, qid=qid))


def test_a_search_on_a_gpu():
    X, y, qid = make_ranking(200, 30, 10, dtype=np.float32, random_state=0)
    found, expected = (
        RankSVMCV(n_points=3, cv=3, device=device).fit(X, y, qid=qid) for device in ("cuda", None)
    )
    np.testing.assert_allclose(
        found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"], atol=1e-3
    )


@pytest.mark.parametrize("k", [5, "l"])
def test_fused_kernels_have_the_bits_of_the_operations(k):
    data = make_data(k, 20_000, 200, layout=np.float32)
    chosen = choose_pairs(data, LOSSES["huber"])
    points = [
        objective_on(data, chosen, matrix=TorchMatrix.of(data, "cuda:0", has_triton=fused)).at(W)
        for fused in (True, False)
    ]
    scores = points[0].scores
    fused, plain = (point.objective.at(W, scores) for point in points)
    assert fused.losses == plain.losses
    assert torch.equal(fused.score_gradient, plain.score_gradient)
    assert torch.equal(fused.hess_vec_scores(scores), plain.hess_vec_scores(scores))


@pytest.mark.parametrize("estimator", [RankSVM(loss="hinge"), SparseRankSVM(radius=0.5)])
def test_fits_are_certified_by_the_host(estimator):
    X, y, qid = make_ranking(200, 30, 10, random_state=0)
    model = estimator.set_params(device="cuda").fit(X, y, qid=qid)
    assert model.gap_ <= 1e-6 * model.objective_


def test_what_does_not_fit_is_refused():
    free = torch.cuda.mem_get_info()[0]
    hog = torch.empty(max(free - (1 << 28), 0), dtype=torch.uint8, device="cuda")
    X, y, qid = make_ranking(20_000, 30, 200, dtype=np.float32, random_state=0)
    with pytest.raises(ValueError, match=r"the data need .* on cuda:0"):
        RankSVM(device="cuda").fit(X, y, qid=qid)
    del hog


def test_another_card_is_refused():
    X = torch.zeros(4, 2, device="cuda:0")
    count = torch.cuda.device_count()
    message = "does not exist" if count == 1 else "X is on cuda:0"
    with pytest.raises(ValueError, match=message):
        RankSVM(device="cuda:1").fit(X, [0, 1, 0, 1])
