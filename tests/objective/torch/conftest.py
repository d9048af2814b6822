"""Fixtures of the tests of PyTorch."""

import pytest
import torch


@pytest.fixture(autouse=True)
def one_torch_thread():
    """Tests run side by side already; PyTorch's threads would wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
