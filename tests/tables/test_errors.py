"""Errors that reach the user carry an exit code."""

from stepscope.tables import errors

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.StepscopeError)]


def test_exit_codes_leave_room_for_the_job() -> None:
    """Exit codes are 64 or more and below 128, so that none is mistaken for a signal or a small code of a job.

    ``check`` runs no job and has the codes of linters.
    """
    assert all(64 <= kind.exit_code < 128 for kind in KINDS if kind is not errors.CheckError)
    assert errors.CheckError.exit_code == 2


def test_exit_codes_are_told_apart() -> None:
    """No two kinds of error share an exit code, but for a damaged pack, which is a session that cannot be opened."""
    codes = [kind.exit_code for kind in KINDS if kind is not errors.DamagedError]
    assert len(codes) == len(set(codes))
    assert errors.DamagedError.exit_code == errors.SessionError.exit_code == 65
