"""The examples of docs/rest.md, against a real server with a session and a live job."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .conftest import PATIENCE_S, TOKEN, environment, viewed

if TYPE_CHECKING:
    from .recorded import Recorded

PAGE = Path(__file__).resolve().parents[2] / "docs" / "rest.md"


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl on this machine")
def test_every_example_works(recorded: Recorded, live: int, tmp_path: Path) -> None:
    """One after another in one shell, as a reader types them; the first that fails ends it. They label a session, so
    the server is one that no other test asks.
    """
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 9
    script = "set -euo pipefail -x\n" + "\n".join(blocks)
    with viewed([recorded.path.parent], tmp_path / "home") as url:
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=tmp_path,
            env=environment(URL=url, TOKEN=TOKEN, PID=str(live)),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    assert done.returncode == 0, f"{done.stderr[-2000:]}\n{done.stdout[-2000:]}"
    for name in ("openapi.json", "resources.arrow", "steps.arrow", "report.html", "session.stepscope.zip"):
        assert (tmp_path / name).stat().st_size > 100, name


def test_every_operation_is_documented() -> None:
    """The page names each address of the interface."""
    from stepscope.web.application import OPERATIONS

    page = PAGE.read_text()
    missing = [op.path for op in OPERATIONS if op.path.rsplit("}", 1)[-1] not in page]
    assert missing == []
