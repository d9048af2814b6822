"""Unknown keywords raise errors that say which one to use."""

import inspect
import re

import pytest
from sklearn.base import clone

from marginrank import AdditiveRankSVM, KernelRankSVM, RankSVM, RankSVMCV, SGDRankSVM

X, y = [[0.0], [1.0], [2.0]], [0, 1, 2]


@pytest.mark.parametrize("model", [RankSVM(), AdditiveRankSVM(), KernelRankSVM(), SGDRankSVM()])
@pytest.mark.parametrize(
    ("keyword", "hint"),
    [
        ("groups", "; pass query ids as qid=, or sizes of contiguous queries as group=."),
        ("sample_weights", "; did you mean 'sample_weight'?"),
        ("zzz", "'zzz'."),
    ],
)
def test_fit(model, keyword, hint):
    what = f"{type(model).__name__}.fit() got an unexpected keyword argument '{keyword}'"
    with pytest.raises(TypeError, match=re.escape(what)) as error:
        model.fit(X, y, **{keyword: y})
    assert hint in str(error.value)


@pytest.mark.parametrize("keyword", ["eval_set", "eval_qid", "eval_group"])
@pytest.mark.parametrize("model", [AdditiveRankSVM(), KernelRankSVM(), RankSVMCV()])
def test_fits_without_validation_data(model, keyword):
    with pytest.raises(TypeError, match=f"{keyword}.*SGDRankSVM.fit"):
        model.fit(X, y, **{keyword: [(X, y)]})


def test_validation_data_of_pyterrier_is_ignored():
    """PyTerrier passes it to every learner of form="ltr"."""
    plain = RankSVM().fit(X, y, group=[3])
    model = RankSVM().fit(X, y, group=[3], eval_set=[(X, y)], eval_group=[[3]])
    assert (model.coef_ == plain.coef_).all()


@pytest.mark.parametrize(
    ("make", "hint"),
    [
        (lambda: RankSVMCV(objective="ndcg@10"), "fit the estimator without CV in its name"),
        (lambda: RankSVM(c=1), "RankSVM() got an unexpected keyword argument 'c'; did you mean 'C"),
        (lambda: RankSVM(kernel="rbf"), "use KernelRankSVM"),
        (lambda: RankSVM(metric="map"), "pass scoring="),
    ],
)
def test_constructors(make, hint):
    with pytest.raises(TypeError, match=re.escape(hint)):
        make()


def test_signatures_and_clones_are_those_of_the_methods():
    assert list(inspect.signature(RankSVM.fit).parameters)[:4] == ["self", "X", "y", "qid"]
    assert clone(RankSVM(C=3)).get_params()["C"] == 3


def test_an_objective_in_any_case():
    assert RankSVM(objective="NDCG@3").fit(X, y).n_rounds_ >= 1


def test_methods_of_subclasses_may_pass_on_keywords():
    class Own(RankSVM):
        def __init__(self, **parameters):
            super().__init__(**parameters)

        def fit(self, X, y=None, **options):
            return super().fit(X, y, **options)

    model = Own(C=0.5).fit(X, y, qid=[0, 0, 0])
    assert model.C == 0.5
    with pytest.raises(TypeError, match="'zzz'"):
        model.fit(X, y, zzz=1)
