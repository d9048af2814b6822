"""Fits on a device: what they find, what they refuse, and who has the last word."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from marginrank import (
    AdditiveRankSVM,
    KernelRankSVM,
    RankingData,
    RankSVM,
    RankSVMCV,
    SparseRankSVM,
    SparseRankSVMCV,
    load_model,
    make_ranking,
)
from marginrank.fit import inputs
from marginrank.fit.inputs import device_name, matrix_on, scores_on_device
from marginrank.fit.linear import Parameters, make_objective
from marginrank.metrics import ndcg, pairwise_accuracy
from marginrank.objective.losses import LOSSES
from marginrank.operators.native import NativeMatrix
from marginrank.operators.torch.documents import DeviceDocuments
from marginrank.operators.torch.matrix import TorchDesign, TorchMatrix

X, Y, QID = make_ranking(40, (2, 20), 6, random_state=0)
DATA = RankingData(X, Y, QID)


@pytest.fixture(autouse=True)
def one_torch_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    "layout", [np.asarray, np.float32, sp.csr_array], ids=["f64", "f32", "csr"]
)
def test_the_optimum_is_that_of_the_native_kernels(loss, layout):
    options = {"C": 0.1, "loss": loss, "tol": 1e-7, "scale": "standard"}
    found = RankSVM(device="cpu", **options).fit(layout(X), Y, qid=QID)
    expected = RankSVM(**options).fit(layout(X), Y, qid=QID)
    assert found.objective_ == pytest.approx(expected.objective_, rel=2e-7)
    assert found.gap_ <= 1e-6 * found.objective_
    assert type(found.coef_) is np.ndarray
    assert found.coef_.dtype == np.float64


@pytest.mark.parametrize("parameter", [{"radius": 0.3}, {"C": 2.0, "l1_ratio": 0.5}])
def test_sparse_fits(parameter):
    found = SparseRankSVM(device="cpu", **parameter).fit(X, Y, qid=QID)
    expected = SparseRankSVM(**parameter).fit(X, Y, qid=QID)
    assert found.objective_ == pytest.approx(expected.objective_, rel=2e-6)
    assert found.gap_ <= 1e-6 * found.objective_


def test_the_last_word_is_native():
    """Value and gap are those of the native kernels at the weights that were found, to the bit."""
    model = RankSVM(device="cpu", C=0.1).fit(X, Y, qid=QID)
    point = make_objective(DATA, Parameters(C=0.1)).at(model.coef_)
    assert model.objective_ == point.value
    assert model.gap_ == point.gap


def test_wrong_sums_are_found_out(monkeypatch):
    """A device that solves another problem, as if C were a half: what is told of it is true."""
    right = DeviceDocuments.of.__func__

    def wrong(cls, *given):
        documents = right(cls, *given)
        return replace(documents, query_weight=0.5 * documents.query_weight)

    monkeypatch.setattr(DeviceDocuments, "of", classmethod(wrong))
    model = RankSVM(device="cpu", C=0.1).fit(X, Y, qid=QID)
    best = RankSVM(C=0.1).fit(X, Y, qid=QID)
    assert model.objective_ > (1 + 1e-4) * best.objective_
    assert model.gap_ >= model.objective_ - best.objective_ > 0


def test_pairs_and_selections():
    pairs = np.array([[0, 1], [2, 0], [3, 1]])
    rows = np.arange(5)
    for options, given in (
        ({}, {"pairs": pairs}),
        ({"pair_selection": "adjacent", "pair_cost": "gain"}, {"y": Y[rows]}),
    ):
        found, expected = (
            RankSVM(device=device, **options).fit(X[rows], **given) for device in ("cpu", None)
        )
        assert found.objective_ == pytest.approx(expected.objective_, rel=2e-6)


def test_tensors_in_the_place_of_arrays():
    expected = RankSVM().fit(X, Y, qid=QID)
    tensors = [torch.as_tensor(a) for a in (X, Y, QID)]
    for device in (None, "cpu"):
        found = RankSVM(device=device).fit(tensors[0], tensors[1], qid=tensors[2])
        assert found.objective_ == pytest.approx(expected.objective_, rel=1e-6)
        scores = found.predict(tensors[0])
        assert isinstance(scores, np.ndarray)
        np.testing.assert_array_equal(scores, found.predict(X))
    csr = torch.as_tensor(X).to_sparse_csr()
    found = RankSVM(device="cpu").fit(csr, tensors[1], qid=tensors[2])
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-6)
    assert found.score(csr, tensors[1], qid=tensors[2]) == pytest.approx(
        expected.score(X, Y, qid=QID), abs=1e-3
    )


def test_a_tensor_is_used_where_it_is():
    tensor = torch.as_tensor(X)
    matrix = matrix_on(DATA, "cpu", tensor)
    assert isinstance(matrix, TorchMatrix)
    assert matrix.features.X.data_ptr() == tensor.data_ptr()
    assert isinstance(matrix_on(DATA, None, tensor), NativeMatrix)
    assert isinstance(matrix_on(DATA, None, None), NativeMatrix)


@pytest.mark.parametrize(
    "search",
    [
        RankSVMCV(Cs=[0.01, 0.1, 1.0], cv=3, tol=1e-5),
        SparseRankSVMCV(n_points=3, cv=2),
    ],
    ids=["linear", "sparse"],
)
def test_searches_find_the_same_on_a_device(search):
    expected = search.fit(DATA).cv_results_["mean_test_score"]
    found = search.set_params(device="cpu").fit(DATA)
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], expected, atol=1e-3)
    assert found.best_estimator_.device == "cpu"


def test_problems_share_products_on_the_device(monkeypatch):
    """The native kernels only have the last fit's evaluation; all folds are in each product."""
    shared = []
    dots = TorchDesign.dots

    def counted(self, vs):
        shared.append(len(vs))
        return dots(self, vs)

    monkeypatch.setattr(TorchDesign, "dots", counted)
    RankSVMCV(Cs=[0.1, 1.0], cv=3, tol=1e-4, device="cpu", refit=False).fit(DATA)
    assert max(shared) == 3


def test_kernels_on_a_device(tmp_path):
    some = slice(60)
    expected = KernelRankSVM(C=1.0).fit(X[some], Y[some], qid=QID[some])
    found = KernelRankSVM(C=1.0, device="cpu").fit(X[some], Y[some], qid=QID[some])
    assert found.objective_ == pytest.approx(expected.objective_, rel=2e-6)
    found.save(tmp_path / "model.npz")
    assert load_model(tmp_path / "model.npz").device is None


def test_models_without_a_device_say_why():
    with pytest.raises(TypeError, match="'device'; it always computes on the CPU"):
        AdditiveRankSVM(device="cuda")


@pytest.mark.parametrize("layout", ["dense", "csr", "whole numbers"])
def test_predictions_on_the_device_of_a_tensor(layout):
    model = RankSVM(C=0.1).fit(np.round(X), Y, qid=QID)
    tensor = torch.as_tensor(np.round(X))
    if layout == "csr":
        tensor = tensor.to_sparse_csr()
    elif layout == "whole numbers":
        tensor = tensor.to(torch.int32)
    found = scores_on_device(tensor, model.coef_)
    assert found.dtype == torch.float64
    np.testing.assert_allclose(found.numpy(), model.predict(np.round(X)), rtol=1e-12, atol=1e-12)


class OnGpu:
    """The part of a tensor on a GPU that metrics read: NumPy cannot convert it."""

    is_cuda = True

    def __init__(self, values):
        self.values = values

    def cpu(self):
        return torch.as_tensor(self.values)

    def __array__(self, *args, **kwargs):
        raise TypeError("a tensor on a GPU is no array")


def test_metrics_take_scores_of_a_device():
    scores = X[:, 0]
    for metric in (ndcg, pairwise_accuracy):
        expected = metric(Y, scores, qid=QID)
        assert metric(OnGpu(Y), OnGpu(scores), qid=OnGpu(QID)) == expected


class FakeTensor:
    """The part of a tensor on a GPU that device_name reads."""

    device = torch.device("cuda", 0)

    def __init__(self, n):
        self.n = n

    def numel(self):
        return self.n

    def element_size(self):
        return 4


def test_small_data_stay_on_the_host_unless_asked():
    small, large = FakeTensor(inputs.SMALL_BYTES // 4 - 1), FakeTensor(inputs.SMALL_BYTES // 4)
    assert device_name(None, small) is None
    assert device_name(None, large) == "cuda:0"
    assert device_name("cuda", small) == "cuda"


def test_too_large_for_the_card(monkeypatch):
    monkeypatch.setattr(inputs, "free_bytes", lambda torch, device: 10_000)
    with pytest.raises(ValueError, match=r"need 1?\d+ MB on cpu.* 0 MB .*device=None"):
        RankSVM(device="cpu").fit(RankingData(*make_ranking(1000, 20, 50, random_state=0)))


def test_the_model_file_has_the_device_and_needs_none(tmp_path):
    model = RankSVM(device="cpu").fit(X, Y, qid=QID)
    model.device = "cuda:7"
    model.save(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert loaded.device == "cuda:7"
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("cuda:99", "device='cuda:99' does not exist"),
        ("mps", "device='mps' has no float64"),
        ("mps:0", "device='mps:0' has no float64"),
        ("gpu", "device='gpu' must be None, 'cpu', 'cuda'"),
        (0, "device=0 must be None"),
        (torch.device("cpu"), "must be None"),
    ],
)
def test_devices_that_are_refused(device, message):
    for estimator in (RankSVM(device=device), SparseRankSVM(device=device)):
        with pytest.raises(ValueError, match=message):
            estimator.fit(X, Y, qid=QID)


def test_a_limit_of_memory_beside_a_device(tmp_path):
    DATA.save(tmp_path / "store")
    with pytest.raises(ValueError, match=r"device='cpu'.*memory_limit"):
        RankSVM(device="cpu").fit(tmp_path / "store", memory_limit="1GB")


def test_without_torch_there_is_a_message():
    code = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, NoTorch())
from marginrank import RankSVM
RankSVM().fit([[0.0], [1.0]], [0, 1])
try:
    RankSVM(device="cpu").fit([[0.0], [1.0]], [0, 1])
except ImportError as error:
    assert "pip install torch" in str(error), error
else:
    raise SystemExit("no error")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_torch_is_not_imported_before_it_is_asked_for():
    code = """
import sys
from marginrank import RankSVM
RankSVM().fit([[0.0], [1.0]], [0, 1]).predict([[2.0]])
raise SystemExit("torch" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


REAL = {
    "MQ2008": [f"MQ2008/S{k}.txt.gz" for k in (1, 2, 3)],
    "OHSUMED": [f"OHSUMED/S{k}.txt.gz" for k in (1, 2, 3)],
    "MSLR-sample": ["MSLR-sample/train.txt.gz"],
}


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("name", REAL)
def test_real_data_are_certified_by_a_native_sweep(real_data, name, loss):
    features, labels, queries = real_data(*REAL[name])
    options = {"loss": loss, "C": 0.01, "tol": 1e-6, "scale": "range"}
    model = RankSVM(device="cpu", **options).fit(features.astype(np.float32), labels, qid=queries)
    assert model.gap_ <= 1e-6 * model.objective_
