"""The kernel PCA map against the kernel, and against scikit-learn's Nystroem."""

import numpy as np
import pytest
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import pairwise_kernels

from marginrank.fit.kernel import KernelMap, choose_landmarks
from marginrank.models.kernels import Kernel

X = np.random.default_rng(0).normal(size=(120, 5))


def fitted(kernel, n_components=None):
    landmarks = choose_landmarks(kernel, X, n_components, seed=0)
    return KernelMap.of(landmarks, X)


@pytest.mark.parametrize("name", ["linear", "poly", "rbf", "laplacian", "cosine"])
def test_inner_products_are_the_kernel(name):
    psi = fitted(Kernel(name, gamma=0.3, degree=2)).features(X, threads=1)
    parameters = {"gamma": 0.3, "degree": 2, "coef0": 1}
    expected = pairwise_kernels(X, metric=name, filter_params=True, **parameters)
    np.testing.assert_allclose(psi @ psi.T, expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize(("kernel", "n_dimensions"), [(Kernel("linear"), 5), (Kernel("poly"), 56)])
def test_dimensions_that_the_documents_do_not_span_are_dropped(kernel, n_dimensions):
    """Monomials of degree 3 and less in 5 variables: 56."""
    assert fitted(kernel).roots.size == n_dimensions


def test_nystroem_approximates_the_kernel_as_scikit_learn_does():
    map = fitted(Kernel("rbf", gamma=0.3), 30)
    psi = map.features(X, threads=2)
    theirs = Nystroem(gamma=0.3, n_components=30, random_state=0).fit(X)
    assert set(theirs.component_indices_) == set(map.landmarks.rows)
    expected = theirs.transform(X)
    np.testing.assert_allclose(psi @ psi.T, expected @ expected.T, atol=1e-8)


def test_the_expansion_scores_as_the_map_does():
    map = fitted(Kernel("rbf", gamma=0.3), 30)
    w = np.random.default_rng(1).normal(size=map.roots.size)
    scores = map.landmarks.product(X, map.expansion(w), threads=1)
    np.testing.assert_allclose(scores, map.features(X, threads=1) @ w, rtol=1e-6, atol=1e-8)


def test_a_float32_kernel_matrix_keeps_what_is_above_its_rounding():
    values = (X @ X.T).astype(np.float32)
    kernel = Kernel("precomputed")
    landmarks = choose_landmarks(kernel, values, None, seed=0)
    assert KernelMap.of(landmarks, values).roots.size == 5
