"""The overview says what the terminal's report says: of imported files, of jobs without steps, of detectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from stepscope.model.api.rest_api import SessionDetail
from stepscope.report import words
from stepscope.report.marked import Md
from stepscope.server.open_sessions import OpenSessions
from stepscope.server.session_catalogue import SessionCatalogue
from stepscope.server.timelines.kept_timelines import Timelines
from stepscope.tables.layout import key_of
from stepscope.web.application import create
from stepscope.web.operation import Hub

from .conftest import TOKEN, browser
from .recorded import TRACED, lying

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.testclient import TestClient

    from stepscope.web.settings import Access

    from .recorded import Recorded


def flat(text: str) -> str:
    """Text with any blanks as one."""
    return " ".join(text.split())


def asked(path: Path, access: Access, form: str = "text") -> tuple[SessionDetail, str]:
    """The overview's numbers and the report in a format, blanks as one."""
    hub = Hub(
        catalogue=SessionCatalogue([path]), open_sessions=OpenSessions(), timelines=Timelines(path.parent / "timelines")
    )
    client: TestClient = browser(create(hub, access), headers={"Authorization": f"Bearer {TOKEN}"})
    address = f"/api/v1/sessions/{key_of(path.resolve())}"
    text = client.get(f"{address}/report", params={"format": form}).text
    detail = msgspec.json.decode(client.get(f"{address}/summary").content, type=SessionDetail)
    return detail, flat(text)


def test_imported_steps(tmp_path: Path, access: Access) -> None:
    """Files of other tools have the steps, parts and planes that the report names, and no made-up rates of a run."""
    detail, text = asked(lying(tmp_path, "import"), access)
    imported = detail.imported
    assert imported is not None
    assert f"{TRACED} steps" in next(line.text for line in imported.lines if line.label == "steps")
    for line in imported.lines:
        assert flat(f"{line.label} {line.text}") in text
    assert all(part.word in text for part in imported.parts)
    assert sum(part.ratio for part in imported.parts) == pytest.approx(1, abs=0.05)
    assert detail.findings or detail.nothing_said in text


def test_a_job_without_steps(tmp_path: Path, access: Access) -> None:
    """Where nothing could be looked at, nothing is said to be insignificant."""
    detail, text = asked(lying(tmp_path, "run"), access)
    assert detail.imported is None
    assert "significant" not in detail.nothing_said
    assert detail.nothing_said in text


@pytest.mark.parametrize("kind", ["import", "run", "measured"])
def test_detectors_are_counted_as_in_the_report(kind: str, tmp_path: Path, recorded: Recorded, access: Access) -> None:
    """What became of the detectors is the report's own line, and adds up to all of them."""
    detail, page = asked(recorded.path if kind == "measured" else lying(tmp_path, kind), access, "md")
    items = detail.checked_said
    assert sum(int(item.split()[0]) for item in items) == sum(detail.checked.values())
    assert any("could not decide" in item for item in items)
    said = words.SEPARATOR.join(item for item in items if not item.endswith("found"))
    assert flat(Md.escape(said)) in page
