"""The page of a report: one safe file of limited size."""

import re

import numpy as np
import pytest
from helpers.reports import HOSTILE, record_in

import marginrank
from marginrank import RankingData, RankSVM
from marginrank._utils import optional
from marginrank.models import LinearModel
from marginrank.reporting.text import embedded, visible

LARGEST = 2_000_000  # bytes


def test_names_are_text(linear_report, data):
    page = linear_report.to_html()
    assert record_in(page) == linear_report.record
    markup = re.sub(r"<script.*?</script>", "", page, flags=re.S)
    for name in HOSTILE:
        assert name not in page
    assert "onerror='" not in markup
    assert "⟨U+202E⟩evil⟨U+2066⟩ {{ 7 * 7 }}" in markup
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", markup)


def test_nothing_is_loaded(linear_report):
    page = linear_report.to_html()
    loads = re.findall(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="([^"]*)"', page)
    assert loads == ["data:,"]
    assert "default-src 'none'" in page
    assert page.count("'sha256-") == page.count("<script>") == 4
    style = page[page.index("<style>") : page.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def test_text_cannot_end_its_element():
    text = embedded({"a": "</script><!--&\u2028"})
    assert text == '{"a":"\\u003c/script\\u003e\\u003c!--\\u0026\\u2028"}'


def test_hidden_characters_are_visible():
    assert visible("a\u202eb\u0000c\ud800 é 文") == "a⟨U+202E⟩b⟨U+0000⟩c⟨U+D800⟩ é 文"
    assert visible("pass\xadword\u3164\U000e0041") == "pass⟨U+00AD⟩word⟨U+3164⟩⟨U+E0041⟩"


@pytest.mark.parametrize(
    ("n_features", "dtype", "comment"),
    [(136, np.float32, "page "), (100, np.float64, "<&>" * 200), (4, np.float64, "文" * 80)],
)
def test_a_thousand_queries_fit_in_two_megabytes(n_features, dtype, comment):
    rng = np.random.default_rng(0)
    n_queries, n_documents = 1000, 15
    n = n_queries * n_documents
    X = rng.normal(size=(n, n_features)).astype(dtype)
    y = rng.integers(0, 5, size=n)
    ids = [f"{comment}{q}" for q in np.repeat(np.arange(n_queries), n_documents)]
    data = RankingData(X, y, qid=ids, comments=[f"{comment}{i}" for i in range(n)])
    report = marginrank.report(LinearModel(rng.normal(size=n_features), {}), data)
    assert len(report.to_html().encode()) <= LARGEST
    assert len(report.record["blocks"]) == n_queries


def test_more_queries_are_listed_in_part():
    rng = np.random.default_rng(0)
    n = 1200 * 4
    X, y = rng.normal(size=(n, 2)), rng.integers(0, 2, size=n)
    data = RankingData(X, y, qid=np.repeat(np.arange(1200), 4))
    record = marginrank.report(LinearModel(np.array([1.0, 0.0]), {}), data).record
    assert len(record["queries"]["id"]) == len(record["blocks"]) <= 1000
    assert record["queries"]["total"] == 1200
    values = marginrank.metrics.ndcg(data.y, X[:, 0], qid=data.qid, k=10, per_query=True)
    listed = record["queries"]["value"]
    assert min(listed) == pytest.approx(values.min())
    assert max(listed) == pytest.approx(values.max())


def test_a_page_needs_jinja_and_a_record_does_not(linear_report, monkeypatch, tmp_path):
    def missing(module):
        raise ImportError(module)

    monkeypatch.setattr(optional, "import_module", missing)
    with pytest.raises(ImportError, match="pip install jinja2"):
        linear_report.save(tmp_path / "report.html")
    linear_report.save(tmp_path / "report.json")
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_one_query_has_a_report_without_intervals():
    X = np.arange(6.0).reshape(3, 2)
    model = RankSVM().fit(X, [0, 1, 2])
    report = marginrank.report(model, X, [0, 1, 2], baseline=-X[:, 0])
    assert report.verdict.startswith("model has ndcg@10 1.0000 over 1 query; baseline has 0.")
    row = report.record["metrics"][0]
    for one in (row, row["baseline"], row["difference"], *report.record["importance"]):
        assert one["low"] is one["high"] is None
    assert '<span class="interval">–' not in report.to_html()
