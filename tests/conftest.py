"""Fixtures that several test files share."""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings
from sklearn.datasets import load_svmlight_file

from marginrank._utils.threads import serial_blas

# Derandomized, so a failure in CI is the same failure everywhere.
settings.register_profile("marginrank", deadline=None, derandomize=True, database=None)
settings.load_profile("marginrank")


def pytest_configure(config):
    """Set the variables that Triton, when it is imported, and Java read.

    Triton interprets its kernels without a GPU.
    """
    if config.option.markexpr != "gpu":
        os.environ.setdefault("TRITON_INTERPRET", "1")
    # Most exports to Java run for less time than the optimizing compiler takes.
    os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Collect no doctests from test files: pytest would search every object that they import."""
    return [found for found in (yield) if not isinstance(found, DoctestModule)]


@pytest.fixture(scope="session")
def real_folder():
    """Return the folder of real data."""
    folder = os.environ.get("MARGINRANK_DATA")
    if not folder:
        pytest.skip("MARGINRANK_DATA is unset: it must name the folder of real ranking data")
    return Path(folder)


@pytest.fixture(scope="session")
def real_data(real_folder):
    """Return a function from files such as "MQ2008/S1.txt.gz" to (X, y, qid), stacked."""

    @cache
    def load(*names):
        parts = [load_svmlight_file(real_folder / name, query_id=True) for name in names]
        n_features = max(X.shape[1] for X, _, _ in parts)
        X = np.zeros((sum(X.shape[0] for X, _, _ in parts), n_features))
        at = 0
        for part, _, _ in parts:
            X[at : at + part.shape[0], : part.shape[1]] = part.toarray()
            at += part.shape[0]
        return X, *(np.concatenate([part[k] for part in parts]) for k in (1, 2))

    return load


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread():
    """As in a fit: the threads of BLAS would fight with those of the kernels for the cores."""
    with serial_blas():
        yield
