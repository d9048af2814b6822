"""Learners on features as they are, with C = 1 and smoothness 1: the problems of definitions."""

from functools import partial

from marginrank import AdditiveRankSVM, KernelRankSVM, SparseRankSVM, sparse_path
from marginrank.additive.fit import AdditiveParameters
from marginrank.fit.sparse import SparseParameters

plain_curves = partial(AdditiveRankSVM, C=1.0, normalization="none", smoothness=1.0, max_bins=32)
plain_curve_parameters = partial(
    AdditiveParameters, C=1.0, normalization="none", smoothness=1.0, max_bins=32
)
plain_kernel = partial(KernelRankSVM, C=1.0, normalization="none", scale=None, gamma=None)
plain_sparse = partial(SparseRankSVM, C=1.0, scale=None)
plain_problem = partial(SparseParameters, C=1.0, scale=None)
plain_sparse_path = partial(sparse_path, scale=None)
