"""Page, report, JSON, REST and ``top`` agree in every number, for sessions of different kinds.

Named numbers are compared by their places. Beyond those, every number with a unit that the terminal, the offline page
or a page of the browser shows must be one of report.json's (``tests.web.numbers``), or a sum that ``pool``
makes of them.
"""

from __future__ import annotations

import html as markup
import os
import re
import signal
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import msgspec
import pytest
from tests.detectors import jobs as made
from tests.web.browser import CHROMIUM, FLAGS, Tab, tab_of
from tests.web.conftest import PATIENCE_S, TOKEN, browser, command, environment
from tests.web.numbers import Pool, shown
from tests.web.recorded import Recorded, fed, fit, lying, write

from stepscope.diagnosis import analyze
from stepscope.launcher import jobs
from stepscope.model.api.status import Status
from stepscope.model.report.report import Report
from stepscope.report import html, live, text, words
from stepscope.server.open_sessions import OpenSessions
from stepscope.server.session_catalogue import SessionCatalogue
from stepscope.sessions import analysis
from stepscope.sidecar.live import Live
from stepscope.store import redaction
from stepscope.store.pseudonyms import Pseudonyms
from stepscope.tables.findings import Finding
from stepscope.tables.units import format_ns, format_rate, format_ratio
from stepscope.web.application import create
from stepscope.web.operation import Hub

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser
    from starlette.testclient import TestClient

    from stepscope.collector.recorder import Recording
    from stepscope.model.session.session import Session, Worker
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
    "empty": lambda: made.nothing().session(),
}
"""What each is made of; the tenth holds a file of another tool."""
IMPORTED = "imported"
ALL = (*KINDS, IMPORTED)


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recorded]:
    """One of each kind, stored as the sidecar stores it, with its reports."""
    folder = tmp_path_factory.mktemp("kinds")
    found = {kind: write(make(), folder / f"{kind}.stepscope") for kind, make in KINDS.items()}
    found[IMPORTED] = Recorded(lying(folder, "import"))
    analyze.write_reports(found[IMPORTED].path)
    return found


def report_of(session: Recorded) -> Report:
    """Its report.json."""
    return msgspec.json.decode((session.path / "report.json").read_bytes(), type=Report)


@pytest.fixture(scope="module")
def asked(sessions: dict[str, Recorded], access: Access) -> TestClient:
    """Who knows the token of a server over them."""
    roots = [one.path for one in sessions.values()]
    app = create(Hub(catalogue=SessionCatalogue(roots), open_sessions=OpenSessions()), access)
    return browser(app, headers={"Authorization": f"Bearer {TOKEN}"})


@pytest.mark.parametrize("kind", ALL)
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
    seen = max((steps["median_ns"] for trace in whole["op_traces"] for steps in trace["steps"][:1]), default=0)
    per_s = 1e9 / seen if kind == "imported" and seen else rates["steps_per_s"]
    assert (listed["steps_per_s"], listed["samples_per_s"]) == (per_s, rates["samples_per_s"])


@pytest.mark.parametrize("kind", ALL)
def test_a_redacted_copy_says_the_same(sessions: dict[str, Recorded], tmp_path: Path, kind: str) -> None:
    """Pseudonyms change no figure, no finding and no stage of the input, and damage no file."""
    copied = tmp_path / "copy.stepscope"
    redaction.copy(sessions[kind].path, copied, Pseudonyms(bytes(16)))
    before, after = report_of(sessions[kind]), analysis.analyze(copied)
    assert [(f.code, f.severity, f.cost) for f in after.findings] == [
        (f.code, f.severity, f.cost) for f in before.findings
    ]
    assert (after.session.steps, after.session.throughput) == (before.session.steps, before.session.throughput)
    assert [(part.component, part.ratio) for part in after.anatomy] == [(p.component, p.ratio) for p in before.anatomy]
    assert after.stages == before.stages
    places = [[(place.line, "/" in place.file) for place in one.where] for one in after.findings]
    assert places == [[(place.line, "/" in place.file) for place in one.where] for one in before.findings]
    assert [one.code for one in after.diagnostics] == [one.code for one in before.diagnostics]


@pytest.mark.parametrize("kind", ALL)
def test_terminal_and_offline_page_say_the_same(sessions: dict[str, Recorded], kind: str) -> None:
    """Rates, median, parts of the step and costs of the findings, as formatted from report.json."""
    report = report_of(sessions[kind])
    said, page = text.render(report, width=400), html.render(report)
    times = report.session.step_times
    for whole in (said, page):
        if times is not None:
            assert format_ns(times.p50_ns) in whole
        for finding in report.findings:
            assert finding.code in whole
            if finding.severity in {"high", "medium", "low"}:
                assert words.percent(finding.cost.ratio) in whole
        for part in report.anatomy:
            if part.ratio >= 0.02:
                assert words.percent(part.ratio) in whole


def pool(session: Recorded) -> Pool:
    """The numbers of report.json, and what is made of several: sums of a phase, an op's calls and steps, the rest."""
    whole = msgspec.json.decode((session.path / "report.json").read_bytes())
    found = Pool(whole)
    phases: defaultdict[str, list[dict[str, float]]] = defaultdict(list)
    for entry in whole["ledger"]:
        phases[entry["phase"]].append(entry)
        phases["all"].append(entry)
    for entries in phases.values():
        found.add("time", sum(entry["ns"] for entry in entries))
        found.add("share", sum(entry["ratio"] for entry in entries))
    ops = whole["ops"] or {"steps": 1}
    for group in ("ops", "types", "makers"):
        rows = ops.get(group, [])
        for row in rows:
            found.add("time", row["ns"] / max(1, row["calls"]))
            found.add("time", row["ns"] / max(1, ops["steps"]))
        left = ops.get("ns", 0) - sum(row["ns"] for row in rows)
        found.add("time", left)
        found.add("time", left / max(1, ops["steps"]))
        found.add("share", left / max(1, ops.get("ns", 0)))
    return found


def words_of(page: str) -> str:
    """Text of an HTML page, without its drawings, whose axes have numbers of their own."""
    return markup.unescape(re.sub(r"<[^>]+>", " ", re.sub(r"<(svg|style).*?</\1>", "", page, flags=re.DOTALL)))


@pytest.mark.parametrize("kind", ALL)
def test_every_number_of_terminal_and_offline_page_is_the_reports(sessions: dict[str, Recorded], kind: str) -> None:
    """No number with a unit in the text, all reasons included, or in the words of the page, is of anything else."""
    report = report_of(sessions[kind])
    known = pool(sessions[kind])
    assert known.strange(text.render(report, width=400, verbose=True)) == []
    assert known.strange(words_of(html.render(report))) == []


def seen(worker: Worker) -> SimpleNamespace:
    """A worker as the sidecar has drained it to the end."""
    calls = Counter(zip(worker.records.kind.tolist(), worker.records.name.tolist(), strict=True))
    recent = SimpleNamespace(
        counts=calls, records=len(worker.records), fit=None, fit_runs=False, nodes=[], worker=lambda _: worker
    )
    return SimpleNamespace(info=worker.info, closed=False, unread=0, types=(), doing=lambda: 0, recent=recent)


def status_of(session: Session, run: Path) -> Status:
    """What the sidecar of a job publishes that has done what the session holds."""
    gpu = SimpleNamespace(now=())
    tables = SimpleNamespace(tables=dict, rival_names=list, resource_names=list, spare=False, gpu=gpu)
    recording = SimpleNamespace(
        manifest=msgspec.structs.replace(session.manifest, mode="enable"),
        job=None,
        session=run,
        run=run,
        disk_problem="",
        drain=lambda _: None,
        drainer=SimpleNamespace(
            workers={worker.info.key: seen(worker) for worker in session.workers}, ends=SimpleNamespace(unended={})
        ),
        sampling=tables,
    )

    class Ended(Live):
        """With all of the session as its recent past."""

        def session(self) -> Session:
            return session

    live_one = Ended(cast("Recording", recording), 0)
    live_one.refresh(10_000 * MS)
    live_one.tick(10_000 * MS, "running")
    return msgspec.json.decode((run / "status.json").read_bytes(), type=Status)


@pytest.mark.parametrize("kind", KINDS)
def test_top_agrees_with_the_report(sessions: dict[str, Recorded], tmp_path: Path, kind: str) -> None:
    """Steps, rates, parts of the step, findings and tasks that ``ps`` and ``top`` show of it are the report's."""
    report = report_of(sessions[kind])
    status = status_of(KINDS[kind](), tmp_path)
    significant = words.significant(report)
    rates = report.session.throughput
    assert status.problems == ()
    assert (status.steps, status.findings) == (report.session.steps, len(significant))
    assert (status.steps_per_s, status.samples_per_s) == (
        pytest.approx(rates.steps_per_s) if rates.steps_per_s else None,
        pytest.approx(rates.samples_per_s) if rates.samples_per_s else None,
    )
    shares: defaultdict[str, float] = defaultdict(float)
    for part in report.anatomy:
        shares[part.component] += part.ratio
    assert {s.component: s.ratio for s in status.anatomy} == pytest.approx(shares)
    assert (status.top is None) == (not significant)
    if status.top is not None:
        first = significant[0]
        assert (status.top.code, status.top.title, status.top.cost_ratio) == (first.code, first.title, first.cost.ratio)
    tasks = {(str(task.kind), task.name): task for task in report.tasks}
    for task in status.tasks:
        same = tasks[task.kind, task.name]
        assert (task.count, task.mean_ns, task.p95_ns) == (same.count, same.mean_ns, same.p95_ns)
    own = ("of a core", "ago", "of root", "session  ")
    row = live.JobRow(status=status, user="root", state="running", name="train.py")
    lines = live.text(row, width=200).splitlines()
    body = "\n".join(line for line in lines if not any(word in line for word in own))
    assert pool(sessions[kind]).strange(body) == []
    assert list(shown(body)) or kind == "empty"


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
    """A number as both say it: the terminal writes 18.0 where a chart of the page writes 18."""
    return re.sub(r"(\.\d*?)0+(?=\D|$)", r"\1", shown).replace(". ", " ").rstrip(".")


def _costs(finding: Finding) -> str:
    """What the head of its card says: that a saving is not known does not mean that nothing was lost."""
    if finding.cost.ratio > 0:
        return f"costs {format_ratio(finding.cost.ratio)}"
    return "saving not known" if finding.cost.basis == "unknown" else "no cost observed"


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
    assert shown["Steps"] == words.steps_text(report.session).rpartition(" ")[0]
    if times is not None:
        assert (bare(shown["Step (median)"]), bare(shown["p95"])) == (
            bare(format_ns(times.p50_ns)),
            bare(format_ns(times.p95_ns)),
        )
    tab.page.locator("section[aria-labelledby=measuring-title]").wait_for()
    shares = tab.page.locator("section[aria-labelledby=step-title] td:nth-child(2)").all_inner_texts()
    assert shares == [f"{words.percent(part.ratio)} %" for part in report.anatomy]
    costs = tab.page.locator(".card-head .cost").all_inner_texts()
    assert costs == [_costs(finding) for finding in report.findings]


PAGES = ("", "/tasks", "/input", "/ops", "/code", "/memory")
AXES = "main .chart, main .controls, main .ask"
"""Parts of a page whose numbers are times of charts, or what one asks for."""


@pytest.mark.browser
@pytest.mark.parametrize("kind", ALL)
def test_every_number_on_the_page_is_the_reports(sessions: dict[str, Recorded], tab: Tab, kind: str) -> None:
    """On every page of a session, all of it unfolded; the overview shows at least as many as the terminal's head."""
    known, counts = pool(sessions[kind]), []
    known.add("share", 0.005)  # from which on the Code page shows the share of a line, as it says
    for part in PAGES:
        tab.open(f"/sessions/{sessions[kind].key}{part}")
        tab.page.locator("main h2, main h1, main dl, main .quiet, main .failed").first.wait_for(state="attached")
        tab.page.wait_for_load_state("networkidle")
        tab.page.evaluate("() => document.querySelectorAll('details').forEach((one) => (one.open = true))")
        tab.page.evaluate(f"() => document.querySelectorAll('{AXES}').forEach((one) => one.remove())")
        said = tab.page.locator("main").inner_text()
        counts.append(len(list(shown(said))))
        assert known.strange(said) == [], part
    assert counts[0] > 0 or kind == "empty"


def test_top_shows_what_the_page_is_told(client: TestClient, live_status: jobs.RunningJob) -> None:
    """One status serves both: what REST hands to the page is what ``top`` draws."""
    status = live_status.status
    told = client.get(f"/api/v1/jobs/{status.pid}").json()
    while told["status"]["updated_unix_s"] != status.updated_unix_s:
        live_status = jobs.again(live_status) or live_status
        status = live_status.status
        told = client.get(f"/api/v1/jobs/{status.pid}").json()
    assert msgspec.json.decode(msgspec.json.encode(status)) == told["status"]
    row = live.JobRow(status=status, user=live_status.user, state=live_status.state, name=live_status.name)
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
