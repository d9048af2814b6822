"""X as a tensor that the host has no copy of."""

import scipy.sparse as sp
import torch

from marginrank.operators.torch.matrix import TorchMatrix


def alone(data):
    X = data.X
    if sp.issparse(X):
        parts = (torch.as_tensor(part) for part in (X.indptr, X.indices, X.data))
        return TorchMatrix.alone(torch.sparse_csr_tensor(*parts, size=X.shape))
    return TorchMatrix.alone(torch.as_tensor(X))
