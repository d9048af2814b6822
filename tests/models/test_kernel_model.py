"""Files of KernelRankSVM."""

import json
import zipfile
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.plain_defaults import plain_kernel
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

from marginrank import load_model, make_ranking
from marginrank._utils.parameters import declared
from marginrank.models import KernelModel, is_model, read_any_model
from marginrank.models.kernel_model import HEADER, KERNEL_PARAMETERS
from marginrank.models.parameters import ESTIMATOR_ONLY, LinearDeclaration

X, Y, QID = make_ranking(20, 8, 4, random_state=0)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.npz"


def rewrite(path, change):
    """Change the arrays of a file."""
    with np.load(path) as archive:
        arrays = dict(archive)
    change(arrays)
    with path.open("wb") as file:
        np.savez(file, **arrays)


def set_header(**values):
    def change(arrays):
        header = json.loads(arrays[HEADER].tobytes())
        header.update(values)
        arrays[HEADER] = np.frombuffer(json.dumps(header).encode(), np.uint8)

    return change


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array, pd.DataFrame])
@pytest.mark.parametrize("n_components", [None, 20])
def test_a_file_predicts_bitwise_the_same(path, layout, n_components):
    documents = layout(X)
    if layout is pd.DataFrame:
        documents.columns = list("abcd")
    model = plain_kernel(kernel="poly", n_components=n_components, C=0.3, degree=2)
    model.fit(documents, Y, qid=QID).save(path)
    read = load_model(path)
    assert read.predict(documents).tobytes() == model.predict(documents).tobytes()
    assert read.get_params() == model.get_params()
    for name in ("objective_", "gap_", "stop_reason_", "n_iter_", "n_pairs_", "n_features_in_"):
        assert getattr(read, name) == getattr(model, name)
    assert hasattr(read, "feature_names_in_") == (layout is pd.DataFrame)
    assert read.score(documents, Y, qid=QID) == model.score(documents, Y, qid=QID)


def test_a_precomputed_kernel(path):
    values = rbf_kernel(X)
    model = plain_kernel(kernel="precomputed", n_components=30).fit(values, Y, qid=QID)
    model.save(path)
    np.testing.assert_array_equal(load_model(path).predict(values), model.predict(values))


def test_commands_read_it_too(path):
    model = plain_kernel().fit(X, Y, qid=QID)
    model.save(path)
    assert is_model(path)
    read = read_any_model(path)
    assert isinstance(read, KernelModel)
    assert (read.kind, read.n_features) == ("marginrank KernelRankSVM", 4)
    np.testing.assert_array_equal(read.scores(X), model.predict(X))
    with pytest.raises(ValueError, match="the data has 3 features, but the model has 4"):
        read.scores(X[:, :3])
    with pytest.raises(ValueError, match=r"X\[0, 0\] is NaN"):
        read.scores(np.full((1, 4), np.nan))


def test_files_know_the_parameters_of_the_estimator():
    known = {*declared(LinearDeclaration), *ESTIMATOR_ONLY["KernelRankSVM"], *KERNEL_PARAMETERS}
    # The device belongs to a fit, not to a model.
    assert plain_kernel().get_params().keys() == known | {"device"}


def test_what_cannot_be_saved(path):
    with pytest.raises(NotFittedError):
        plain_kernel().save(path)
    model = plain_kernel(kernel=rbf_kernel).fit(X, Y, qid=QID)
    with pytest.raises(TypeError, match="callable kernel"):
        model.save(path)
    assert not path.exists()


@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_cut_files_are_refused(path, share):
    plain_kernel().fit(X, Y, qid=QID).save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=r"m\.npz is damaged"):
        load_model(path)


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_files_with_random_bytes_are_refused_with_their_path(path, layout):
    """Wherever the bytes are; those at the end are the list of what the archive holds."""
    documents = sp.csr_array(np.where(X > 0, X, 0)) if layout == "csr" else X
    plain_kernel(n_components=8).fit(documents, Y, qid=QID).save(path)
    content = np.frombuffer(path.read_bytes(), np.uint8)
    rng = np.random.default_rng(0)
    for _ in range(400):
        changed = content.copy()
        changed[-1 - rng.geometric(1 / 200, size=2) % content.size] = rng.integers(256, size=2)
        path.write_bytes(changed.tobytes())
        with suppress(ValueError):  # bytes that do not matter may have changed
            load_model(path)
            continue
        with pytest.raises(ValueError, match=r"m\.npz"):
            load_model(path)


@pytest.mark.parametrize("dtype", [complex, float, bool])
@pytest.mark.parametrize("name", ["indices", "indptr"])
def test_indices_that_are_no_integers_are_refused(path, name, dtype):
    documents = sp.csr_array(np.where(X > 0, X, 0))
    plain_kernel().fit(documents, Y, qid=QID).save(path)
    rewrite(path, lambda arrays: arrays.update({name: arrays[name].astype(dtype)}))
    with pytest.raises(ValueError, match=r"m\.npz is damaged: the landmarks are not a CSR matrix"):
        load_model(path)


def test_a_flipped_bit_is_found(path):
    plain_kernel().fit(X, Y, qid=QID).save(path)
    with zipfile.ZipFile(path) as archive:
        at = archive.getinfo("dual_coef.npy").header_offset + 400
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"m\.npz is damaged: Bad CRC-32"):
        load_model(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_header(format="other"), "is not a kernel model"),
        (set_header(version=2), "format version 2, .* reads version 1; install"),
        (set_header(n_features=0), "'n_features' is not a positive integer"),
        (set_header(n_features=5), "landmarks are not a matrix of 160 × 5 finite numbers"),
        (set_header(parameters={"kernel": "rbf", "gama": 1}), "invalid for KernelRankSVM.*gama"),
        (set_header(parameters={"kernel": "rfb"}), "invalid for KernelRankSVM.*'rfb'"),
        (set_header(parameters={"kernel": "rbf", "tol": 0}), "invalid for KernelRankSVM.*tol=0"),
        (set_header(parameters={"gamma": 1}), "invalid for KernelRankSVM.*'kernel' is missing"),
        (set_header(parameters=[]), "'parameters' is not an object"),
        (set_header(feature_names=[1]), "'feature_names' is not"),
        (lambda arrays: arrays.pop("landmarks"), "landmarks are missing"),
        (lambda arrays: arrays.pop("dual_coef"), "'dual_coef' is not a vector"),
        (lambda arrays: arrays.update(dual_coef=np.ones(3)), "lacks a valid entry per landmark"),
        (
            lambda arrays: arrays.update(dual_coef=np.full(160, np.nan)),
            "lacks a valid entry per landmark",
        ),
        (lambda arrays: arrays.update(indptr=np.ones(3)), "landmarks are not a CSR matrix"),
        (lambda arrays: arrays.update(dual_coef=np.array([{}])), "Object arrays cannot be loaded"),
    ],
)
def test_damaged_files_are_refused(path, change, message):
    plain_kernel().fit(X, Y, qid=QID).save(path)
    rewrite(path, change)
    for read in (load_model, read_any_model):
        with pytest.raises(ValueError, match=rf"m\.npz.*{message}"):
            read(path)


def test_files_that_ask_for_absurd_memory_are_refused(path):
    plain_kernel().fit(X, Y, qid=QID).save(path)
    header = np.lib.format.magic(1, 0)
    with zipfile.ZipFile(path, "a") as archive:
        text = b"{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000000,), }"
        text = text.ljust(117) + b"\n"
        archive.writestr("more.npy", header + len(text).to_bytes(2, "little") + text)
    with pytest.raises(ValueError, match=r"m\.npz is damaged: Unable to allocate"):
        load_model(path)


def test_compressed_files_are_refused(path):
    """They could be a thousand times as large in memory."""
    plain_kernel().fit(X, Y, qid=QID).save(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    np.savez_compressed(path, **arrays)
    with pytest.raises(ValueError, match=r"m\.npz is damaged: .* is compressed"):
        load_model(path)


def test_deep_and_doubled_headers_are_refused(path):
    for text, message in ((b"[" * 100_000, "it is not JSON"), (b'{"a": 1, "a": 2}', "twice")):
        plain_kernel().fit(X, Y, qid=QID).save(path)

        def change(arrays, text=text):
            arrays[HEADER] = np.frombuffer(text, np.uint8)

        rewrite(path, change)
        with pytest.raises(ValueError, match=message):
            load_model(path)


def test_names_are_as_many_as_features(path):
    model = plain_kernel().fit(X, Y, qid=QID)
    model.save(path)
    rewrite(path, set_header(feature_names=["a"]))
    with pytest.raises(ValueError, match="'feature_names' has 1 entries, not 4"):
        load_model(path)
    model.feature_names_in_ = np.array(["a"], dtype=object)
    with pytest.raises(ValueError, match="the model cannot be saved: 'feature_names' has 1"):
        model.save(path)
    with pytest.raises(ValueError, match=r"C=-1.0 must be"):
        plain_kernel().fit(X, Y, qid=QID).set_params(C=-1.0).save(path)


def test_a_cost_that_is_a_function_is_asked_for_again(path):
    model = plain_kernel(pair_cost=max).fit(X, Y, qid=QID)
    model.save(path)
    loaded = load_model(path)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    with pytest.raises(ValueError, match=r"pair_cost was a callable \(max\)"):
        loaded.fit(X, Y, qid=QID)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_the_scale_is_kept(path, layout):
    documents = layout(X * [1.0, 1e3, 1e-3, 1.0])
    model = plain_kernel(scale="standard", n_components=30).fit(documents, Y, qid=QID)
    model.save(path)
    read = load_model(path)
    np.testing.assert_array_equal(read.scale_, model.scale_)
    assert read.predict(documents).tobytes() == model.predict(documents).tobytes()
    assert read_any_model(path).scores(documents).tobytes() == model.predict(documents).tobytes()


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        (np.ones(3), "'scale' is not a vector of 4 numbers"),
        (np.zeros(4), "'scale' is not positive"),
    ],
)
def test_a_wrong_scale_is_named(path, scale, message):
    plain_kernel(scale="range").fit(X, Y, qid=QID).save(path)
    rewrite(path, lambda arrays: arrays.update(scale=scale))
    with pytest.raises(ValueError, match=message):
        load_model(path)
