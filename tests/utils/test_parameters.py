"""Declarations of parameters, and errors that mention them."""

import copy
import math
import pickle
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from marginrank._utils.parameters import (
    FLAG,
    TEXT,
    Mention,
    Message,
    Parameter,
    ParameterError,
    Wording,
    accepted_by,
    calling,
    check_parameters,
    choice,
    declared,
    given,
    integer,
    number,
    or_none,
    share,
)


@pytest.mark.parametrize(
    ("constraint", "value", "message"),
    [
        (number(), 0, "p=0 must be a finite number, more than 0."),
        (number(), np.nan, "p=nan must be a finite number, more than 0."),
        (number(), "1", "p='1' must be a finite number, more than 0."),
        (number(), True, "p=True must be a finite number, more than 0."),
        (number(allow_equal=True), -1, "p=-1 must be a finite number, at least 0."),
        (share(), 1.5, "p=1.5 must be a number from 0 to 1."),
        (share(), np.nan, "p=nan must be a number from 0 to 1."),
        (share(allow_ends=False), 1.0, "p=1.0 must be a number above 0 and below 1."),
        (integer(at_least=1), 0, "p=0 must be an integer of at least 1."),
        (integer(at_least=1), 1.0, "p=1.0 must be an integer of at least 1."),
        (integer(at_least=1), True, "p=True must be an integer of at least 1."),
        (integer(at_least=1, at_most=9), 10, "p=10 must be an integer from 1 to 9."),
        (FLAG, 1, "p=1 must be True or False."),
        (TEXT, 1, "p=1 must be text."),
        (choice(("a", "b")), "c", "p='c' must be one of 'a', 'b'."),
        (choice(lambda: ["a", "b"]), None, "p=None must be one of 'a', 'b'."),
        (or_none(integer(at_least=1)), 0, "p=0 must be an integer of at least 1."),
    ],
)
def test_wrong_values_are_named(constraint, value, message):
    with pytest.raises(ParameterError) as refused:
        constraint.check("p", value)
    assert str(refused.value) == message
    assert refused.value.parameter == "p"


@pytest.mark.parametrize(
    ("constraint", "value"),
    [
        (number(), np.float32(1e-30)),
        (number(allow_equal=True), 0),
        (share(), 0),
        (share(), 1),
        (integer(at_least=0), np.int64(0)),
        (integer(at_least=1, at_most=9), 9),
        (FLAG, np.bool_(True)),
        (choice(lambda: ["a"]), "a"),
        (or_none(number()), None),
        (accepted_by(len), "text"),
    ],
)
def test_right_values_pass(constraint, value):
    constraint.check("p", value)


def test_names_are_looked_up_when_a_value_is_checked():
    def names():
        raise RuntimeError("too early")

    late = choice(names)
    with pytest.raises(RuntimeError, match="too early"):
        late.check("p", "a")


@dataclass(frozen=True, kw_only=True)
class Settings:
    plain: int = 0
    rate: float = Parameter(number(), "A rate.", "Model").field(0.5)
    name: str = Parameter(TEXT, "A name.", "Output").field()


def test_a_dataclass_is_a_declaration():
    assert list(declared(Settings)) == list(declared(Settings(name="a"))) == ["rate", "name"]
    check_parameters(Settings(plain="anything", name="a"))
    with pytest.raises(ParameterError, match="rate=-1 must be"):
        check_parameters(Settings(rate=-1, name="a"))
    with pytest.raises(TypeError, match="name"):
        Settings()


def test_an_error_is_spelled_by_each_surface():
    parts = (given("l1_ratio", 0.5), " goes without a ", Mention("radius"), ".")
    error = ParameterError(*parts)
    assert str(error) == "l1_ratio=0.5 goes without a radius."
    assert error.spelled(lambda m: m.name.upper()) == "L1_RATIO goes without a RADIUS."
    again = pickle.loads(pickle.dumps(error))
    assert (again.parts, str(again)) == (parts, str(error))
    assert ParameterError("nothing to name").parameter is None


def test_a_message_inside_of_another_and_words_of_python():
    inner = Message("a penalty (", Mention("C"), ")")
    error = ParameterError(Wording("None or "), "an integer, with ", inner)
    assert str(error) == "None or an integer, with a penalty (C)"
    assert error.spelled(lambda m: f"-{m.name}") == "an integer, with a penalty (-C)"
    assert pickle.loads(pickle.dumps(error)).parts == error.parts


def test_a_parameter_has_another_name_elsewhere():
    with (
        pytest.raises(ParameterError, match=r"^scoring=3 goes without C$") as refused,
        calling("metric", "scoring"),
    ):
        raise ParameterError(given("metric", 3), " goes without ", Mention("C"))
    assert refused.value.parameter == "scoring"


def test_a_message_is_text_and_keeps_its_mentions():
    inner = Message("increase ", Mention("max_iter"))
    message = Message("tolerance: ", inner, " or ", Mention("tol"), ".")
    assert message == "tolerance: increase max_iter or tol."
    for again in (message, pickle.loads(pickle.dumps(message)), copy.copy(message)):
        assert again.spelled(lambda m: m.name.upper()) == "tolerance: increase MAX_ITER or TOL."


@pytest.mark.parametrize("value", [10**400, -(10**400), Fraction(10**400)])
@pytest.mark.parametrize("constraint", [number(), share(), number(above=-math.inf)])
def test_numbers_beyond_the_range_of_floats_are_refused(value, constraint):
    with pytest.raises(ParameterError, match=r"^C=.* must be a "):
        constraint.check("C", value)


def test_messages_do_not_print_thousands_of_digits():
    assert str(given("C", 10**5000)) == "C=<integer of 16,610 bits>"
    assert str(given("C", 2**64)) == "C=18446744073709551616"
