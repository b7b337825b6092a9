"""What the page shows of the report besides findings; and when a running job's session is analysed again."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import msgspec
from tests.web.reading import read

from stepscope.model.api.browsing import Account
from stepscope.model.api.rest_api import SessionBrief
from stepscope.model.api.status import LiveCapture, LiveShare, Status
from stepscope.model.report.report import Report
from stepscope.report import html, text, words
from stepscope.server import browse, browse_account
from stepscope.server.open_sessions import LIVE_MIN_S, OpenSession, OpenSessions

if TYPE_CHECKING:
    import pytest
    from starlette.testclient import TestClient
    from tests.web.recorded import Recorded

    from stepscope.server.session_catalogue import ListedSession


def test_the_account_is_the_reports(client: TestClient, recorded: Recorded) -> None:
    """Ledger, stages and all detectors, with the terminal's own words and the offline page's own rows."""
    report = msgspec.json.decode((recorded.path / "report.json").read_bytes(), type=Report)
    found = read(client, recorded.url + "/account")
    (job,) = found["ledgers"]
    assert job["title"] == "The job"
    assert job["ns"] == sum(entry.ns for entry in report.ledger) == sum(row["ns"] for row in job["rows"])
    assert [(one["ratio"], one["basis"]) for one in found["stages"]] == [
        (one.ratio, words.basis_text(one)) for one in report.stages
    ]
    assert sorted(one["code"] for one in found["detectors"]) == sorted(one.detector for one in report.checked)
    assert found["detectors"][0]["outcome"] == "found"
    assert any(one["outcome"] == "missing data" and one["why_not"] for one in found["detectors"])
    shown, page = text.render(report, width=1000), html.render(report)
    assert all(line["text"] in shown for line in found["lines"])
    assert all(row["label"] in page for row in job["rows"])


def test_a_job_without_steps_yet_has_no_verdict(recorded: Recorded) -> None:
    """While it runs nothing is said to have ended, to be clear or to be unexplained."""
    opened = OpenSession(recorded.path, "")
    report = opened.report
    early = msgspec.structs.replace(report.session, steps=0, step_times=None)
    vars(opened)["report"] = msgspec.structs.replace(report, session=early, findings=())
    brief = SessionBrief(key="k", name="n", path="p", state="running", packed=False, pid=7)
    said = browse.detail(opened, brief)
    assert said.nothing_said.startswith("not analysed yet")
    assert said.checked_said == ("none yet",)
    assert browse_account.account(opened, running=True) == Account(ledgers=(), lines=(), stages=(), detectors=())
    ended = browse.detail(opened, msgspec.structs.replace(brief, pid=None))
    assert not ended.nothing_said.startswith("not analysed yet")


def test_a_running_session_is_read_again(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seldom, as its analysis costs; soon where no steps were seen; at once when there are first steps or a capture."""
    now = [0.0]
    monkeypatch.setattr("stepscope.server.open_sessions.time.monotonic", lambda: now[0])
    revisions = itertools.count()
    monkeypatch.setattr("stepscope.server.open_sessions.revision_of", lambda _: str(next(revisions)))

    def entry(*, steps: bool = False, captures: int = 0) -> ListedSession:
        share = (LiveShare(component="call", ratio=1.0),) if steps else ()
        status = Status(anatomy=share, captures=(LiveCapture(request="r", state="done"),) * captures)
        job = SimpleNamespace(status=status)
        return cast("ListedSession", SimpleNamespace(key="k", path=recorded.path, job=job))

    kept = OpenSessions()
    first = kept.open(entry())
    assert first.report.session.steps
    first.cpu_s = 1.0
    now[0] = 99.0
    assert kept.open(entry()) is first
    second = kept.open(entry(steps=True))
    assert second is not first
    third = kept.open(entry(steps=True, captures=1))
    assert third is not second
    third.cpu_s = 1.0
    vars(third)["report"] = msgspec.structs.replace(
        first.report, session=msgspec.structs.replace(first.report.session, steps=0)
    )
    now[0] += LIVE_MIN_S - 1
    assert kept.open(entry(steps=True, captures=1)) is third
    now[0] += 2
    assert kept.open(entry(steps=True, captures=1)) is not third
