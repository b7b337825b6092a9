"""One run of an experiment."""

from __future__ import annotations

import pytest

from stepscope.use_cases.whatif import runs


@pytest.mark.parametrize(
    ("code", "argv", "named"),
    [
        (2, ("python", "train.py", "--rounds", "3"), "--rounds"),
        (2, ("python", "train.py", "--folder=out"), "--folder=out"),
        (2, ("python", "train.py", "--batch", "3"), ""),
        (1, ("python", "train.py", "--rounds", "3"), ""),
    ],
    ids=["refused", "with-a-value", "not-ours", "other-failure"],
)
def test_options_that_the_program_was_given(code: int, argv: tuple[str, ...], named: str) -> None:
    """A program that refuses an option of ours says so in its output; the message says where the option belongs."""
    said = runs._misplaced(code, argv)
    expected = f"; {named} was given to the program: options of whatif stand before it" if named else ""
    assert said == expected
