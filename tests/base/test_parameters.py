"""Declarations of parameters, and errors that mention them."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest

from marginrank._base.parameters import (
    AcceptedBy,
    Choice,
    Flag,
    Integer,
    Mention,
    Number,
    OrNone,
    Parameter,
    ParameterError,
    Share,
    Text,
    check_parameters,
    declared,
    given,
)


@pytest.mark.parametrize(
    ("constraint", "value", "message"),
    [
        (Number(), 0, "p=0 must be a finite number, more than 0."),
        (Number(), np.nan, "p=nan must be a finite number, more than 0."),
        (Number(), "1", "p='1' must be a finite number, more than 0."),
        (Number(), True, "p=True must be a finite number, more than 0."),
        (Number(allow_equal=True), -1, "p=-1 must be a finite number, at least 0."),
        (Share(), 1.5, "p=1.5 must be a number from 0 to 1."),
        (Share(), np.nan, "p=nan must be a number from 0 to 1."),
        (Share(allow_ends=False), 1.0, "p=1.0 must be a number above 0 and below 1."),
        (Integer(at_least=1), 0, "p=0 must be an integer of at least 1."),
        (Integer(at_least=1), 1.0, "p=1.0 must be an integer of at least 1."),
        (Integer(at_least=1), True, "p=True must be an integer of at least 1."),
        (Integer(at_least=1, at_most=9), 10, "p=10 must be an integer from 1 to 9."),
        (Flag(), 1, "p=1 must be True or False."),
        (Text(), 1, "p=1 must be text."),
        (Choice(("a", "b")), "c", "p='c' must be one of 'a', 'b'."),
        (Choice(lambda: ["a", "b"]), None, "p=None must be one of 'a', 'b'."),
        (OrNone(Integer(at_least=1)), 0, "p=0 must be an integer of at least 1."),
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
        (Number(), np.float32(1e-30)),
        (Number(allow_equal=True), 0),
        (Share(), 0),
        (Share(), 1),
        (Integer(at_least=0), np.int64(0)),
        (Integer(at_least=1, at_most=9), 9),
        (Flag(), np.bool_(True)),
        (Choice(lambda: ["a"]), "a"),
        (OrNone(Number()), None),
        (AcceptedBy(len), "text"),
    ],
)
def test_right_values_pass(constraint, value):
    constraint.check("p", value)


def test_names_are_looked_up_when_a_value_is_checked():
    def names():
        raise RuntimeError("too early")

    late = Choice(names)
    with pytest.raises(RuntimeError, match="too early"):
        late.check("p", "a")


@dataclass(frozen=True, kw_only=True)
class Settings:
    plain: int = 0
    rate: float = Parameter(Number(), "A rate.", "Model").field(0.5)
    name: str = Parameter(Text(), "A name.", "Output").field()


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
