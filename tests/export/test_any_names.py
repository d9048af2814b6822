"""Names of any characters, for targets that run in this process."""

from xml.etree import ElementTree

import numpy as np
import pytest
from helpers.exports import assert_scores, expected_scores, random_documents, random_model
from hypothesis import given
from hypothesis import strategies as st

from marginrank.export.exporting import export_files
from marginrank.export.names import NOT_IN_XML, REORDERING
from marginrank.export.verification import run_export

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
SIGNS = st.sampled_from("\"'`\\[]{}<>()*/-#;:%$&?!.,\n\r\t\x1a\x85\u2028 axu0n")
NAMES = st.lists(
    st.text(SIGNS | CHARACTERS, min_size=1, max_size=12),
    min_size=1,
    max_size=6,
    unique_by=str.lower,
)


@pytest.mark.parametrize("target", ["sqlite", "python", "lucene", "vespa", "solr"])
@given(names=NAMES, seed=st.integers(0, 9))
def test_any_names(target, names, seed):
    if target in ("sqlite", "lucene"):
        names = [name for name in names if not REORDERING.search(name)] or ["x"]
    model = random_model(len(names), seed=seed, names=names)
    X = random_documents(3, len(names), seed=seed)
    files = export_files(model, target)
    run = run_export(model, target, files, X)
    assert_scores(target, np.asarray(run.scores), expected_scores(model, X))


@given(names=NAMES, seed=st.integers(0, 9))
def test_any_names_in_xml(names, seed):
    names = [name for name in names if not NOT_IN_XML.search(name)] or ["x"]
    model = random_model(len(names), seed=seed, names=names)
    root = ElementTree.fromstring(export_files(model, "pmml")[""])
    found = root.iter("{http://www.dmg.org/PMML-4_4}NumericPredictor")
    weights = {one.attrib["name"]: float(one.attrib["coefficient"]) for one in found}
    assert weights == {n: w for n, w in zip(names, model.coef, strict=True) if w}
