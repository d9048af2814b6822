"""Linear models of Vowpal Wabbit, as the text that ``--invert_hash`` writes.

Lines of a header, with the options that shape the model, then ``name:index:weight`` for each weight
that is not zero. Since version 9 the state of the learner stands between them, and behind each
weight, unless the model was written with ``--predict_only_model``.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from marginrank.models._text import Lines, shorten
from marginrank.models.linear_model import LinearModel

FIRST_LINE = re.compile(r"Version (\d{1,9})\.\d+\.\d+\S*", re.ASCII)
OLDEST = 8  # before, headers had other lines
WEIGHT = re.compile(
    r"(?P<name>\S*):(?P<index>\d{1,19}):(?P<weight>\S+)(?P<state>( \S+)*)", re.ASCII
)
HASHED = re.compile(r"\d{1,19}:\S+( \S+)*", re.ASCII)
NUMBERED = re.compile(r"(?P<namespace>[^^]*\^)?(?P<index>[1-9]\d{0,8})", re.ASCII)
CONSTANT = 11_650_396  # the hash of what is added to every score

# Options that leave a model a weighted sum of features; a link changes scores, but no order.
LINEAR_OPTIONS = frozenset(
    [
        *("hash", "hash_seed", "link", "noconstant", "sparse_weights"),
        *("adaptive", "ftrl", "invariant", "normalized", "sgd"),  # how weights were found
        *("l1", "l2", "loss_function", "quantile_tau"),
    ]
)

INVERT_HASH = (
    "only the text of --invert_hash has names; write it by vw -t with the model and the data that "
    "it was trained on"
)


class Header(NamedTuple):
    """Bits of an index, and whether the state of the learner follows."""

    bits: int
    resumes: bool


def is_vowpal_wabbit(path: str) -> bool:
    """Whether a file begins like a text model of Vowpal Wabbit."""
    with open(path, "rb") as file:
        beginning = file.read(64).removeprefix(b"\xef\xbb\xbf").decode("ascii", "replace")
    return FIRST_LINE.match(beginning) is not None


def read(path: str) -> LinearModel:
    """Read the weights by name; the constant is left out, as it changes no order."""
    lines = Lines(path)
    header = _read_header(lines)
    weights: dict[str, float] = {}
    for match in _weight_lines(lines, header.resumes):
        name, index = match["name"], match["index"]
        if name == "Constant" and int(index) == CONSTANT % 2**header.bits:
            continue
        if not name:
            lines.fail(f"weight {index} has no name: {INVERT_HASH}")
        if name in weights:
            lines.fail(f"the feature {shorten(name)} is there twice")
        weights[name] = lines.number_of(match["weight"], f"the weight of {shorten(name)}")
    if not weights:
        lines.next("the weights")
    return _model_of(lines, weights)


def _read_header(lines: Lines) -> Header:
    first = FIRST_LINE.fullmatch(lines.next("'Version'"))
    if first is None:
        lines.fail("this is not 'Version' and a number: no text model of Vowpal Wabbit")
    if int(first[1]) < OLDEST:
        lines.fail(f"versions from {OLDEST} on are read; write the model with a newer vw")
    bits = 0
    line = ""
    while not line.startswith("Checksum"):
        line = lines.next("'Checksum'")
        key, _, value = line.partition(":")
        if key == "bits":
            bits = lines.integer_of(value, "bits", 1, 63)
        elif key == "options":
            _check_options(lines, value)
        elif key == "lda" and value.strip() != "0":
            lines.fail("a topic model (--lda) has no weights of features")
        elif re.fullmatch(r"[1-9]\d* (ngram|skip)", key):
            lines.fail(
                f"the model joins words (--{key.split()[1]}), which is no feature of its own"
            )
    if not bits:
        lines.fail("'bits' is missing in the header")
    flag = lines.next("':0' or ':1'")
    if flag not in (":0", ":1"):
        lines.fail(f"{shorten(flag)} is not ':0' or ':1', which tells whether a state follows")
    return Header(bits, resumes=flag == ":1")


def _check_options(lines: Lines, text: str) -> None:
    for option in re.findall(r"(?<!\S)(--?[A-Za-z]\S*)", text):
        name = option.partition("=")[0].lstrip("-")
        if name not in LINEAR_OPTIONS:
            lines.fail(
                f"the option {shorten(option)} makes the model something else than a weighted sum "
                "of features"
            )


def _weight_lines(lines: Lines, resumes: bool) -> Iterator[re.Match[str]]:
    """Yield the lines of weights; those of the learner's state stand before the first."""
    in_state = resumes
    while lines.more():
        line = lines.next("a weight")
        match = WEIGHT.fullmatch(line)
        if match is not None and (resumes or not match["state"]):
            in_state = False
            yield match
        elif HASHED.fullmatch(line):
            lines.fail(f"{shorten(line)} has no name: {INVERT_HASH}")
        elif not in_state:
            lines.fail(f"{shorten(line)} is not <name>:<index>:<weight>")
        elif line.startswith("l1_state ") and line != "l1_state 0":
            lines.fail("weights are not shrunk by --l1 yet; write them with --predict_only_model")


def _model_of(lines: Lines, weights: dict[str, float]) -> LinearModel:
    """Return a model of named features, or of indices if all names are numbers of one namespace."""
    matches = [NUMBERED.fullmatch(name) for name in weights]
    found = [match for match in matches if match is not None]
    if len(found) < len(weights) or len({match["namespace"] for match in found}) > 1:
        return LinearModel(np.array(list(weights.values())), {}, feature_names=list(weights))
    by_index = dict(zip((int(match["index"]) for match in found), weights.values(), strict=True))
    return LinearModel(lines.weights_of(by_index, max(by_index)), {})
