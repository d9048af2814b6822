"""Ends of UBJSON values."""

import numpy as np
import pytest
import xgboost

from marginrank.models.ubjson import is_complete


def model():
    X = np.random.default_rng(0).normal(size=(50, 3))
    booster = xgboost.train({"verbosity": 0}, xgboost.DMatrix(X, label=X[:, 0]), 3)
    return bytes(booster.save_raw("ubj"))


def test_every_cut_of_a_model_is_seen():
    content = model()
    assert is_complete(content)
    assert not any(is_complete(content[:size]) for size in range(len(content)))
    assert not is_complete(content + b"Z")


@pytest.mark.parametrize("value", [b"Z", b"T", b"i\x05", b"Si\x02ab", b"[$U#i\x02ab", b"[]", b"{}"])
def test_values(value):
    assert is_complete(value)
    assert not any(is_complete(value[:size]) for size in range(len(value)))


@pytest.mark.parametrize("value", [b"", b"?", b"Si\xffab", b"[$U#l\x7f\xff\xff\xff", b"[" * 9999])
def test_nonsense_is_not_complete(value):
    assert not is_complete(value)
