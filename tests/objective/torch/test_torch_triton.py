"""The Triton kernels, under Triton's interpreter; PyTorch's products are the truth."""

import importlib

import numpy as np
import pytest
import torch

from marginrank.operators.torch.features import DenseFeatures

MODULE = "marginrank.operators.torch.triton_features"


@pytest.fixture
def triton_features():
    """Return the class, whose kernels the interpreter runs on the CPU: see conftest.py."""
    pytest.importorskip("triton")
    return importlib.import_module(MODULE).TritonFeatures


@pytest.mark.parametrize("shape", [(1, 1), (33, 64), (100, 65), (2100, 7), (4096, 3), (31, 130)])
def test_products_are_those_of_torch(triton_features, shape):
    rng = np.random.default_rng(0)
    X = torch.as_tensor(rng.normal(size=shape).astype(np.float32))
    v, z = (torch.as_tensor(rng.normal(size=n)) for n in (shape[1], shape[0]))
    found, expected = triton_features(X), DenseFeatures(X)
    for a, b in (
        (found.dot(v), expected.dot(v)),
        (found.transpose_dot(z), expected.transpose_dot(z)),
    ):
        assert a.dtype == torch.float64
        torch.testing.assert_close(a, b, rtol=1e-13, atol=1e-13 * shape[0])


def test_sums_are_in_double_precision(triton_features):
    """Numbers that cancel in float64, and would leave nothing of the rest in float32."""
    X = torch.tensor([[1e8, 1.0, -1e8], [1.0, 1e8, 3.0], [1.0, -1e8, 5.0]])
    ones = torch.ones(3, dtype=torch.float64)
    found = triton_features(X)
    assert found.dot(ones)[0] == 1.0
    assert found.transpose_dot(ones)[1] == 1.0


def test_some_columns(triton_features):
    X = torch.arange(12.0).reshape(3, 4)
    some = triton_features(X).restrict(np.array([1, 3]))
    assert isinstance(some, triton_features)
    found = some.dot(torch.tensor([1.0, 2.0], dtype=torch.float64))
    assert found.tolist() == [7.0, 19.0, 31.0]
