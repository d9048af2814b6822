"""Tensors of PyTorch as input: what they become, and what is refused."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from marginrank import RankSVM
from marginrank.estimators.input import check_same_device, on_host

X = torch.tensor([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]])
Y = torch.tensor([0.0, 2.0, 1.0])


def test_memory_is_shared():
    array = on_host(X, "X")
    assert array.dtype == np.float32
    assert array.ctypes.data == X.data_ptr()
    given = [[1.0]]
    assert on_host(given, "X") is given


def test_sparse_tensors_become_csr():
    found = on_host(X.to_sparse_csr(), "X")
    assert sp.issparse(found)
    np.testing.assert_array_equal(found.toarray(), X.numpy())


def test_tensors_that_are_negatives_or_conjugates_of_their_memory():
    """PyTorch marks these with a bit, and NumPy does not know it."""
    real = torch.stack([X, -X], dim=-1)
    negative = torch.view_as_complex(real).conj().imag  # X, as the negative of a view of -X
    assert negative.is_neg()
    flat = torch._neg_view(-X)
    assert flat.is_neg()
    assert flat.is_contiguous()
    for tensor in (flat, negative.clone()):
        np.testing.assert_array_equal(on_host(tensor, "X"), X.numpy())
    expected = RankSVM().fit(X, Y)
    np.testing.assert_array_equal(RankSVM().fit(flat, Y).coef_, expected.coef_)
    np.testing.assert_array_equal(expected.predict(flat), expected.predict(X))
    np.testing.assert_array_equal(RankSVM().fit(X, torch._neg_view(-Y)).coef_, expected.coef_)
    with pytest.raises(ValueError, match="Complex data not supported"):
        RankSVM().fit(torch.view_as_complex(real).conj(), Y)


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (X.clone().requires_grad_(), r"X requires grad, .* pass X\.detach\(\)"),
        (X.half(), r"X has dtype torch.float16, .* pass X\.float\(\)"),
        (X.bfloat16(), "X has dtype torch.bfloat16"),
        (X.repeat(1, 2)[:, ::2], r"X is not contiguous.* X\.contiguous\(\)"),
        (X.T.contiguous().T, r"X is not contiguous"),
        (X.to_sparse_coo(), r"X has layout torch.sparse_coo.* X\.to_sparse_csr\(\)"),
        (X.to("meta"), "X is a meta tensor"),
        (torch.where(X == 2.0, torch.nan, X), r"X\[1, 0\] is NaN"),
        (torch.where(X == 2.0, torch.inf, X), r"X\[1, 0\] is infinity"),
        (X.to(torch.complex64), "Complex data not supported"),
    ],
)
def test_tensors_that_are_refused(tensor, message):
    model = RankSVM().fit(X, Y)
    labels = Y.to("meta") if tensor.device.type == "meta" else Y
    for device in (None, "cpu"):
        with pytest.raises(ValueError, match=message):
            RankSVM(device=device).fit(tensor, labels)
    with pytest.raises(ValueError, match=message):
        model.predict(tensor)


def test_a_device_without_float64():
    class OnMps(torch.Tensor):
        device = torch.device("mps")

    with pytest.raises(ValueError, match=r"X is on mps.* float64.* X\.cpu\(\)"):
        on_host(X.as_subclass(OnMps), "X")


def test_tensors_on_two_devices_are_refused():
    with pytest.raises(ValueError, match="X is on cpu and y on meta"):
        RankSVM().fit(X, Y.to("meta"))
    check_same_device(X=X, y=Y.numpy(), qid=None, sample_weight=Y)


def test_weights_and_groups_may_be_tensors():
    weight = torch.tensor([1.0, 2.0, 1.0])
    found = RankSVM().fit(X, Y, group=torch.tensor([3]), sample_weight=weight)
    expected = RankSVM().fit(X.numpy(), Y.numpy(), sample_weight=weight.numpy())
    np.testing.assert_array_equal(found.coef_, expected.coef_)
