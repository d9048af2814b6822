"""Features that a parameter names."""

import pytest

from marginrank.data.feature_choice import chosen_columns


@pytest.mark.parametrize(
    ("chosen", "names", "columns"),
    [
        (None, None, []),
        ([0, 2], None, [0, 2]),
        (["b", 0], ["a", "b", "c"], [1, 0]),
        ("b, c", ["a", "b", "c"], [1, 2]),
        ("1,3", None, [0, 2]),  # as LETOR text counts
        ("f1,f3", None, [0, 2]),
        (["1"], ["x", "1", "y"], [1]),
        ([True, False, True], ["a", "b", "c"], [0, 2]),
        ("from_dtype", ["a", "b", "c"], []),
    ],
)
def test_names_and_numbers(chosen, names, columns):
    assert chosen_columns("categorical_features", chosen, names, 3) == columns


@pytest.mark.parametrize(
    ("chosen", "names", "sentence"),
    [
        ("0", None, "categorical_features='0' .*'f1'"),
        ([-1], None, "categorical_features=-1 "),
        (["z"], ["a", "b", "c"], "which have names such as 'a'"),
        ([True], None, "has 1 entries for 3 features"),
        ([True, 1, 2], None, "must be a list of names or column numbers"),
        ([1.5], None, "must be a list of names or column numbers"),
        (7, None, "must be a list of names or column numbers"),
    ],
)
def test_what_is_no_feature(chosen, names, sentence):
    with pytest.raises(ValueError, match=sentence):
        chosen_columns("categorical_features", chosen, names, 3)
