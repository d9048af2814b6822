"""The page in a real browser, offline: what people see and do."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import marginrank
from marginrank.metrics import ndcg
from marginrank.reporting import Report

PATIENCE = 60  # seconds for npm


def text_of(browser, selector):
    return browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)", selector
    )


def press(browser, selector):
    browser.execute_script("document.querySelector(arguments[0]).click()", selector)


def set_value(browser, selector, value, event):
    browser.execute_script(
        "const e = document.querySelector(arguments[0]); e.value = arguments[1];"
        "e.dispatchEvent(new Event(arguments[2]))",
        selector,
        value,
        event,
    )


def queries_shown(browser):
    return text_of(browser, "#query-table tbody th bdi")


def shown(text):
    """Return a text of the data as the page shows it."""
    return text.replace("\u202e", "⟨U+202E⟩").replace("\u2066", "⟨U+2066⟩")


def test_queries_are_sorted_searched_and_filtered(show, linear_report):
    table = linear_report.record["queries"]
    changes = np.subtract(table["value"], table["baseline"])
    browser = show(linear_report)
    ids = np.array([shown(one) for one in table["id"]])
    assert queries_shown(browser) == ids[np.argsort(changes, kind="stable")][:25].tolist()
    press(browser, "th[data-column=value] button")
    press(browser, "th[data-column=value] button")
    best_first = np.argsort(-np.array(table["value"]), kind="stable")
    assert queries_shown(browser) == ids[best_first][:25].tolist()
    assert text_of(browser, "th[aria-sort=descending] bdi") == ["model"]
    press(browser, "#next")
    assert queries_shown(browser) == ids[best_first][25:].tolist()
    set_value(browser, "#search", "EVIL", "input")
    assert queries_shown(browser) == [one for one in ids[best_first] if "evil" in one]
    set_value(browser, "#search", "", "input")
    set_value(browser, "#kind", "worse", "change")
    assert len(queries_shown(browser)) == np.sum(changes < 0)


def test_both_rankings_are_side_by_side(show, linear_report, data, model):
    browser = show(linear_report)
    query = linear_report.record["queries"]["id"].index(data.query_ids[3])
    browser.execute_script(
        "[...document.querySelectorAll('#query-table tbody button')]"
        ".find(b => b.textContent === arguments[0]).click()",
        shown(data.query_ids[3]),
    )
    own = data.qid == query
    for side, scores in (("left", data.X[:, 0]), ("right", model.predict(data))):
        order = np.argsort(-scores[own], kind="stable")[:10]
        titles = [shown(np.array(data.comments)[own][k])[:8] for k in order]
        assert [title[:8] for title in text_of(browser, f"#{side} bdi")[:10]] == titles
        assert text_of(browser, f"#{side} .label")[:10] == [f"{data.y[own][k]:g}" for k in order]
    assert text_of(browser, "#right .badge")
    moves = text_of(browser, "#right .move")
    before, after = moves[0][2:].split(" → ")
    assert moves[0][0] == ("▲" if int(before) > int(after) else "▼")


@pytest.mark.parametrize("name", ["linear_report", "additive_report"])
def test_two_documents_are_explained(show, name, request):
    report = request.getfixturevalue(name)
    browser = show(report)
    press(browser, "#query-table tbody button")
    for _ in range(2):  # what is selected at first, then two others
        assert browser.find_element("css selector", "#waterfall svg").is_displayed()
        added = browser.execute_script(
            "return [...document.querySelectorAll('#why-table tbody tr')]"
            ".map(row => Number(row.lastChild.textContent.replace('−', '-')))"
        )
        assert sum(added[:-1]) == pytest.approx(added[-1], abs=1e-4)  # six digits are shown
        while text_of(browser, "#detail [aria-pressed=true]"):
            press(browser, "#detail [aria-pressed=true]")
        for place in (2, 5):
            press(browser, f"#right li:nth-child({place}) button")
        assert len(text_of(browser, "#right button[aria-pressed=true]")) == 2


def test_sliders_compute_what_python_computes(show, linear_report, data, model):
    browser = show(linear_report)
    record = linear_report.record
    sample = [q for q, block in enumerate(record["blocks"]) if block["full"]]
    rows = np.isin(data.qid, sample)

    def expected(weights):
        return ndcg(data.y[rows], data.X[rows] @ weights, qid=data.qid[rows], k=10)

    def computed():
        return float(browser.execute_script("return document.querySelector('#ndcg').dataset.value"))

    coef = model.coef_.copy()
    assert computed() == pytest.approx(expected(coef), abs=1e-9)
    for number, factor in ((0, -1.0), (1, 0.0), (2, 2.5)):
        set_value(browser, f"#sliders label:nth-child({number + 1}) input", factor, "input")
        coef[record["importance"][number]["term"]] *= factor
        assert computed() == pytest.approx(expected(coef), abs=1e-9)
    copied = browser.execute_script(
        "let text; navigator.clipboard.writeText = async (t) => { text = t; };"
        "document.querySelector('#copy').click(); return text"
    )
    weights = json.loads(json.loads(copied)["model"]["definition"])
    assert list(weights) == data.feature_names
    np.testing.assert_allclose(list(weights.values()), coef, rtol=1e-12)
    order = np.argsort(-(data.X[data.qid == sample[0]] @ coef), kind="stable")
    labels = text_of(browser, "#sample-documents .label")
    assert labels == [f"{y:g}" for y in data.y[data.qid == sample[0]][order][:10]]
    press(browser, "#reset")
    assert computed() == pytest.approx(expected(model.coef_), abs=1e-9)
    assert text_of(browser, "#ndcg-change") == ["unchanged"]


def test_there_are_no_sliders_without_a_sample(show, linear_report):
    blocks = [{**block, "full": False} for block in linear_report.record["blocks"]]
    browser = show(Report({**linear_report.record, "blocks": blocks}))
    assert not browser.find_element("css selector", "#what-if").is_displayed()
    assert not browser.find_element("css selector", "nav a[href='#what-if']").is_displayed()


def test_everything_is_drawn(show, linear_report, additive_report, data, model):
    own = data.qid == 0
    one_query = marginrank.report(model, data.X[own], data.y[own], baseline=data.X[own, 0])
    without_values = marginrank.report(
        model, data.X, 0 * data.y, qid=data.qid, metric="pairwise_accuracy"
    )
    for report in (linear_report, additive_report, one_query, without_values):
        browser = show(report)
        browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")
        empty = browser.execute_script(
            "return [...document.querySelectorAll('[data-chart]')]"
            ".filter(f => !f.querySelector('svg')).map(f => f.dataset.chart)"
        )
        assert empty == []


def test_the_keyboard_is_enough(show, linear_report):
    browser = show(linear_report)
    browser.execute_script("document.querySelector('#query-table tbody button').focus()")
    active = browser.switch_to.active_element
    active.send_keys("\ue007")  # Enter
    dialog = browser.find_element("css selector", "#detail")
    assert dialog.is_displayed()
    browser.switch_to.active_element.send_keys("\ue00c")  # Escape
    assert not dialog.is_displayed()
    assert browser.switch_to.active_element == active


def axe():
    """Return the text of axe-core, from AXE_CORE or from npm, or skip the test."""
    path = os.environ.get("AXE_CORE")
    if path is None:
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("npm is not installed, and AXE_CORE does not name axe.min.js")
        folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "marginrank-axe"
        path = folder / "node_modules/axe-core/axe.min.js"
        if not path.exists():
            command = [npm, "install", "--prefix", folder, "--no-save", "axe-core@4"]
            try:
                subprocess.run(command, capture_output=True, check=True, timeout=PATIENCE)
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
                pytest.skip("npm cannot install axe-core, and AXE_CORE does not name axe.min.js")
    return Path(path).read_text("utf-8")


def violations(browser, script):
    """Return the serious violations that axe-core finds."""
    browser.execute_script(script)
    found = browser.execute_async_script(
        "const done = arguments[arguments.length - 1];"
        "axe.run(document).then(r => done(r.violations))"
    )
    return [
        (one["id"], one["nodes"][0]["html"], one["nodes"][0]["failureSummary"])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


def test_accessibility(show, linear_report, additive_report):
    script = axe()
    for report, scheme in ((linear_report, "light"), (additive_report, "dark")):
        browser = show(report, prefers_color_scheme=scheme)
        assert violations(browser, script) == []
        press(browser, "#query-table tbody button")
        assert violations(browser, script) == []
