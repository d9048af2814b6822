"""What every estimator says to scikit-learn: its tags, and the link to its reference page."""

from email.message import Message

from helpers.tables import each
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

import marginrank
from marginrank import FusionRanker, QueryScaler, RankSVM, SelectKBestRanking
from marginrank.estimators import input

ESTIMATORS = [
    getattr(marginrank, name)
    for name in marginrank.__all__
    if isinstance(getattr(marginrank, name), type)
    and issubclass(getattr(marginrank, name), BaseEstimator)
]
RANKERS = [one for one in ESTIMATORS if one not in (FusionRanker, QueryScaler, SelectKBestRanking)]


def test_all_estimators_are_known():
    assert len(ESTIMATORS) == 11


@each("estimator", RANKERS)
def test_a_ranker_needs_labels_and_takes_sparse_matrices(estimator):
    tags = get_tags(estimator())
    assert tags.target_tags.required
    assert tags.input_tags.sparse
    assert tags.estimator_type is None  # neither a classifier nor a regressor
    assert tags.input_tags.allow_nan == ("Additive" in estimator.__name__)


def test_other_estimators_say_what_they_take():
    assert get_tags(FusionRanker()).input_tags.dict
    assert not get_tags(FusionRanker()).input_tags.two_d_array
    assert get_tags(QueryScaler()).transformer_tags is not None
    assert get_tags(SelectKBestRanking()).target_tags.required


def with_urls(*urls):
    message = Message()
    for url in urls:
        message["Project-URL"] = url
    return message


@each("estimator", ESTIMATORS)
def test_the_html_links_to_nothing_without_a_url(estimator, monkeypatch):
    monkeypatch.setattr(input, "metadata", lambda name: with_urls("Source, https://code.example"))
    assert clone(estimator())._get_doc_link() == ""


def test_the_html_links_to_the_reference_page_of_a_documentation_url(monkeypatch):
    urls = with_urls("Source, https://code.example", "Documentation, https://docs.example/dev/")
    monkeypatch.setattr(input, "metadata", lambda name: urls)
    page = "https://docs.example/dev/reference/api/marginrank.RankSVM.html"
    assert RankSVM()._get_doc_link() == page
    assert page in RankSVM()._repr_html_inner()


def test_a_class_of_a_user_has_no_page():
    class Own(RankSVM):
        pass

    assert Own()._get_doc_link() == ""
