"""What ``attach`` refuses before it looks at anything."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from stepscope.cli import main


@pytest.mark.parametrize("pid", ["abc", "0", "-1", "1.5", "٣"])
def test_what_is_no_process_id(pid: str) -> None:
    """One line says what is expected, and how to find it."""
    done = CliRunner().invoke(main.cli, ["attach", "--", pid])
    assert done.exit_code == 2
    assert f"{pid!r} is not a process id; expected a number, as of: pgrep -f {pid!r}" in done.output
