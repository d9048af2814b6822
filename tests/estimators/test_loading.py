"""Estimators from model files; what files may hold is tested in tests/models."""

import pytest

from marginrank import (
    KernelRankSVM,
    RankSVM,
    RankSVMCV,
    SGDRankSVM,
    SparseRankSVM,
    SparseRankSVMCV,
    load_model,
    make_ranking,
)
from marginrank.estimators.loading import LINEAR
from marginrank.models.json_model import ESTIMATORS

X, Y, QID = make_ranking(20, 8, 4, random_state=0)


def test_every_estimator_that_a_file_may_name_has_a_class():
    assert LINEAR.keys() == set(ESTIMATORS)
    assert all(cls.__name__ == name for name, cls in LINEAR.items())


@pytest.mark.parametrize(
    ("estimator", "loaded"),
    [
        (RankSVM(C=0.1), RankSVM),
        (RankSVMCV(n_points=3, cv=2), RankSVM),
        (SparseRankSVM(radius=0.5), SparseRankSVM),
        (SparseRankSVMCV(n_points=3, cv=2), SparseRankSVM),
        (SGDRankSVM(C=0.1, tol=0.1), SGDRankSVM),
        (KernelRankSVM(n_components=20), KernelRankSVM),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_file_gives_back_its_estimator(tmp_path, estimator, loaded):
    estimator.fit(X, Y, qid=QID).save(tmp_path / "model")
    model = load_model(str(tmp_path / "model"))
    assert type(model) is loaded
    assert model.predict(X).tobytes() == estimator.predict(X).tobytes()
