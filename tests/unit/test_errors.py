"""Errors that reach the user carry an exit code."""

from stepscope import errors


def _all(kind: type[errors.StepscopeError]) -> list[type[errors.StepscopeError]]:
    return [kind, *(found for below in kind.__subclasses__() for found in _all(below))]


def test_exit_codes_leave_room_for_the_job() -> None:
    """Every exit code is 64 or more and below 128, so that none is mistaken for a signal or a small code of a job."""
    assert all(64 <= kind.exit_code < 128 for kind in _all(errors.StepscopeError))


def test_exit_codes_are_told_apart() -> None:
    """No two kinds of error share an exit code."""
    codes = [kind.exit_code for kind in _all(errors.StepscopeError)]
    assert len(codes) == len(set(codes))
