"""Page, report, JSON, REST and ``top`` agree in every number, for sessions of different kinds."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec
import pytest
from tests.detectors import jobs as made
from tests.web.browser import CHROMIUM, FLAGS, Tab, tab_of
from tests.web.conftest import PATIENCE_S, TOKEN, browser, command, environment
from tests.web.recorded import Recorded, fed, fit, write

from stepscope.app import jobs
from stepscope.app.server.open_sessions import OpenSessions
from stepscope.app.server.session_catalogue import SessionCatalogue
from stepscope.model.report.finding import Report
from stepscope.reports import live, text, words
from stepscope.reports.page import html
from stepscope.units import format_ns, format_rate, format_ratio
from stepscope.web.application import create
from stepscope.web.operation import Hub

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from starlette.testclient import TestClient

    from stepscope.model.session.session import Session
    from stepscope.web.settings import Access

MS = 1_000_000
KINDS: dict[str, Callable[[], Session]] = {
    "callback": fit,
    "input": fed,
    "loop": lambda: made.train_loop(10 * MS).session(),
    "generator": lambda: made.pulled(60 * MS, python=55 * MS, role="generator").session(),
    "eager": lambda: made.eager(30, 20).session(),
    "host-sync": lambda: made.synced(20 * MS, 30 * MS).session(),
    "saving": lambda: made.saving(200 * MS).session(),
    "retraced": lambda: made.retraced(50 * MS).session(),
    "predicting": lambda: made.predicting(20 * MS).session(),
    "empty": lambda: made.nothing().session(),
}


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recorded]:
    """One of each kind, stored as the sidecar stores it, with its reports."""
    folder = tmp_path_factory.mktemp("kinds")
    return {kind: write(make(), folder / f"{kind}.stepscope") for kind, make in KINDS.items()}


def report_of(session: Recorded) -> Report:
    """Its report.json."""
    return msgspec.json.decode((session.path / "report.json").read_bytes(), type=Report)


@pytest.fixture(scope="module")
def asked(sessions: dict[str, Recorded], access: Access) -> TestClient:
    """Who knows the token of a server over them."""
    roots = [one.path for one in sessions.values()]
    app = create(Hub(catalogue=SessionCatalogue(roots), open_sessions=OpenSessions()), access)
    return browser(app, headers={"Authorization": f"Bearer {TOKEN}"})


@pytest.mark.parametrize("kind", KINDS)
def test_rest_gives_the_parts_of_the_report(sessions: dict[str, Recorded], asked: TestClient, kind: str) -> None:
    """Every answer that a page is made of is a part of report.json, to the last digit."""
    whole = msgspec.json.decode((sessions[kind].path / "report.json").read_bytes())

    def get(part: str) -> dict[str, object]:
        found = asked.get(f"{sessions[kind].url}/{part}").json()
        assert isinstance(found, dict)
        return found

    summary = get("summary")
    assert (summary["summary"], summary["overhead"]) == (whole["session"], whole["overhead"])
    assert summary["anatomy"] == get("stages")["anatomy"] == whole["anatomy"]
    assert get("stages")["stages"] == whole["stages"]
    assert get("findings")["items"] == whole["findings"]
    assert get("tasks")["items"] == whole["tasks"]
    assert get("series")["columns"] == whole["series"]
    shown = get("input")
    assert (shown["tree"], shown["bound"]) == (whole.get("input_tree"), whole.get("input_bound"))
    listed = asked.get(sessions[kind].url).json()
    rates = whole["session"]["throughput"]
    assert (listed["steps_per_s"], listed["samples_per_s"]) == (rates["steps_per_s"], rates["samples_per_s"])


@pytest.mark.parametrize("kind", KINDS)
def test_terminal_and_offline_page_say_the_same(sessions: dict[str, Recorded], kind: str) -> None:
    """Rates, median, parts of the step and costs of the findings, as formatted from report.json."""
    report = report_of(sessions[kind])
    said, page = text.render(report, width=400), html.render(report)
    times = report.session.step_times
    for shown in (said, page):
        if times is not None:
            assert format_ns(times.p50_ns) in shown
        for finding in report.findings:
            assert finding.code in shown
            if finding.severity in {"high", "medium", "low"}:
                assert words.percent(finding.cost.ratio) in shown
        for part in report.anatomy:
            if part.ratio >= 0.02:
                assert words.percent(part.ratio) in shown


@pytest.fixture(scope="module")
def tab(sessions: dict[str, Recorded], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """A tab of a real browser over them."""
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine (make system-deps)")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    state = str(tmp_path_factory.mktemp("state"))
    server = subprocess.Popen(
        command("view", *(str(one.path) for one in sessions.values()), "--port", "0"),
        env=environment(STEPSCOPE_TOKEN=TOKEN, XDG_STATE_HOME=state, XDG_CACHE_HOME=state),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    url = server.stdout.readline().strip().rstrip("/")
    with api.sync_playwright() as playwright:
        chromium: Browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield tab_of(chromium.new_context(), url)
        chromium.close()
    server.send_signal(signal.SIGINT)
    server.communicate(timeout=PATIENCE_S)


def bare(shown: str) -> str:
    """A number as both say it: the terminal writes 18.0 and us, the page 18 and µs."""
    return re.sub(r"(\.\d*?)0+(?=\D|$)", r"\1", shown.replace("µs", "us")).replace(". ", " ").rstrip(".")


@pytest.mark.browser
@pytest.mark.parametrize("kind", KINDS)
def test_the_page_shows_the_numbers_of_the_terminal(sessions: dict[str, Recorded], tab: Tab, kind: str) -> None:
    """What stands on the overview, formatted by the page, is what the terminal's functions make of report.json."""
    report = report_of(sessions[kind])
    tab.open(f"/sessions/{sessions[kind].key}")
    facts = tab.page.locator(".facts")
    facts.wait_for()
    shown = dict(zip(facts.locator("dt").all_inner_texts(), facts.locator("dd").all_inner_texts(), strict=True))
    times, rates = report.session.step_times, report.session.throughput
    rate = rates.samples_per_s or rates.steps_per_s
    if rate:
        assert bare(shown["Throughput"].split()[0]) == bare(format_rate(rate))
    assert shown["Steps"] == f"{report.session.steps:,}"
    if times is not None:
        assert (bare(shown["Step (median)"]), bare(shown["p95"])) == (
            bare(format_ns(times.p50_ns)),
            bare(format_ns(times.p95_ns)),
        )
    legend = tab.page.locator("section[aria-labelledby=anatomy-title] .legend b").all_inner_texts()
    assert legend == [format_ratio(part.ratio) for part in report.anatomy]
    if report.findings:
        tab.page.locator(".card-head").first.wait_for()
    costs = tab.page.locator(".card-head .cost").all_inner_texts()
    assert costs == [
        f"costs {format_ratio(f.cost.ratio)}" if f.cost.ratio > 0 else "no cost observed" for f in report.findings
    ]


def test_top_shows_what_the_page_is_told(client: TestClient, live_status: jobs.RunningJob) -> None:
    """One status serves both: what REST hands to the page is what ``top`` draws."""
    status = live_status.status
    told = client.get(f"/api/v1/jobs/{status.pid}").json()
    while told["status"]["updated_unix_s"] != status.updated_unix_s:
        live_status = jobs.again(live_status) or live_status
        status = live_status.status
        told = client.get(f"/api/v1/jobs/{status.pid}").json()
    assert msgspec.json.decode(msgspec.json.encode(status)) == told["status"]
    row = live.Row(status=status, user=live_status.user, state=live_status.state, name=live_status.name)
    said = live.text(row, width=160)
    assert f"{status.steps:,} steps" in said
    assert live.phase(status) in said
    for share in status.anatomy:
        if share.ratio >= 0.02:
            assert format_ratio(share.ratio) in said
    if status.steps_per_s is not None:
        assert f"{format_rate(status.steps_per_s)} steps/s" in said


@pytest.fixture
def live_status(live: int) -> jobs.RunningJob:
    """The running job of ``live``."""
    found = next(job for job in jobs.running() if job.status.pid == live)
    assert found.status.uid == os.getuid()
    return found
