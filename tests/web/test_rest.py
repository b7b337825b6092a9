"""What the interface answers is what the session holds."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from msgspec.structs import replace
from tests.web.conftest import TOKEN, browser
from tests.web.reading import read
from tests.web.recorded import PROGRAM, STEPS

from stepscope.derive.view import SessionView
from stepscope.server import browse
from stepscope.server.open_sessions import OpenSession, OpenSessions, revision_of
from stepscope.server.session_catalogue import SessionCatalogue
from stepscope.sessions import analysis, bundle
from stepscope.tables.layout import key_of
from stepscope.web.application import create
from stepscope.web.operation import Hub

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.testclient import TestClient
    from tests.web.recorded import Recorded

    from stepscope.web.settings import Access

BEARER = {"Authorization": f"Bearer {TOKEN}"}


def test_health(client: TestClient) -> None:
    """The server says that it is there."""
    assert read(client, "/api/v1/health")["status"] == "ok"


def test_sessions_are_listed_and_found(client: TestClient, recorded: Recorded) -> None:
    """By words of name and command, by state; with throughput and top finding of the report."""
    report = analysis.analyze(recorded.path)
    found = {b["key"]: b for b in read(client, "/api/v1/sessions")["items"]}[recorded.key]
    assert found["name"] == "slow"
    assert found["state"] == "finished"
    assert found["steps"] == report.session.steps == STEPS
    assert found["steps_per_s"] == pytest.approx(report.session.throughput.steps_per_s)
    assert found["findings"] == sum(one.severity != "info" for one in report.findings) < len(report.findings)
    assert found["top"]["code"] == report.findings[0].code

    def keys(**params: str) -> set[str]:
        return {b["key"] for b in read(client, "/api/v1/sessions", **params)["items"]}

    assert recorded.key in keys(q="train.py FINISHED")
    assert recorded.key in keys(state="finished", q=report.findings[0].code)
    assert keys(q="no such words") == set()
    assert recorded.key not in keys(state="damaged")


def test_a_session_equals_its_report(client: TestClient, recorded: Recorded) -> None:
    """Summary, findings, tasks, stages, series are the report's."""
    report = json.loads((recorded.path / "report.json").read_bytes())
    summary = read(client, recorded.url + "/summary")
    assert summary["summary"] == report["session"]
    assert summary["anatomy"] == report["anatomy"]
    assert summary["overhead"] == report["overhead"]
    assert sum(summary["checked"].values()) == len(report["checked"])
    assert read(client, recorded.url + "/findings")["items"] == report["findings"]
    assert read(client, recorded.url + "/tasks")["items"] == report["tasks"]
    assert read(client, recorded.url + "/stages")["stages"] == report["stages"]
    assert read(client, recorded.url + "/series")["columns"] == report["series"]
    resources = read(client, recorded.url + "/resources")["columns"]
    assert "res_t" in resources
    assert {len(column) for column in resources.values()} == {len(resources["res_t"])}
    assert read(client, recorded.url)["key"] == recorded.key


def test_findings_carry_evidence(client: TestClient, recorded: Recorded) -> None:
    """The page can open what a finding rests on: numbers and source lines."""
    first = read(client, recorded.url + "/findings")["items"][0]
    assert first["evidence"]
    place = first["where"][0]
    source = read(client, recorded.url + "/source", file=place["file"], first=place["line"], limit=3)
    lines = PROGRAM.splitlines()
    assert source["lines"] == lines[place["line"] - 1 : place["line"] + 2]
    assert source["total"] == len(lines)


def test_steps_are_paged(client: TestClient, recorded: Recorded) -> None:
    """Pages follow each other without gap, and hold the steps that are derived."""
    steps = SessionView(bundle.open_session(recorded.path)).steps
    assert steps is not None
    got: list[dict[str, Any]] = []
    offset: int | None = 0
    while offset is not None:
        page = read(client, recorded.url + "/steps", offset=offset, limit=128)
        assert page["total"] == len(steps)
        assert page["offset"] == offset
        got += page["items"]
        offset = page["next_offset"]
    assert [s["index"] for s in got] == list(range(len(steps)))
    assert [s["dur_ns"] for s in got] == steps.durations.tolist()
    assert [s["steady"] for s in got] == steps.steady.tolist()
    assert read(client, recorded.url + "/steps", offset=10_000)["items"] == []


@pytest.mark.parametrize("name", ["steps", "resources"])
def test_arrow_equals_json(client: TestClient, recorded: Recorded, name: str) -> None:
    """Bulk as Arrow holds the same columns."""
    said = read(client, f"{recorded.url}/{name}")
    answer = client.get(f"{recorded.url}/{name}", params={"format": "arrow"})
    assert answer.headers["content-type"] == "application/vnd.apache.arrow.stream"
    table = pa.ipc.open_stream(answer.content).read_all()
    if name == "steps":
        assert table.to_pylist() == said["items"]
        empty = client.get(f"{recorded.url}/steps", params={"format": "arrow", "offset": 10_000})
        assert pa.ipc.open_stream(empty.content).read_all().schema == table.schema
    else:
        assert table.to_pydict() == said["columns"]


def test_reports_in_every_form(client: TestClient, recorded: Recorded) -> None:
    """As `stepscope report` makes them."""
    assert read(client, recorded.url + "/report") == json.loads((recorded.path / "report.json").read_bytes())
    for form, name in (("html", "report.html"), ("md", "report.md")):
        answer = client.get(recorded.url + "/report", params={"format": form})
        assert answer.content == (recorded.path / name).read_bytes(), form
    assert "steps" in client.get(recorded.url + "/report", params={"format": "text"}).text


def test_flames(client: TestClient, recorded: Recorded) -> None:
    """The sampled Python stacks, as a page and as a file for other tools."""
    events = read(client, recorded.url + "/flames")["items"]
    assert events[0]["event"] == "python"
    assert events[0]["samples"] > 0
    folded = client.get(recorded.url + "/flame", params={"event": "python", "format": "folded", "window": "all"}).text
    assert "main" in folded
    assert "draw" in folded
    other = client.get(recorded.url + "/flame", params={"event": "off-cpu"})
    assert other.status_code == 404
    assert "python" in other.json()["detail"]


def test_what_is_not_there_is_said(client: TestClient, recorded: Recorded) -> None:
    """No op trace; no such session; no such address."""
    assert "stepscope trace" in client.get(recorded.url + "/ops").json()["detail"]
    assert client.get("/api/v1/sessions/0123456789abcdef/report").status_code == 404
    assert client.get("/api/v1/nothing").json()["status"] == 404
    assert read(client, recorded.url + "/captures") == {"stored": [], "live": []}


def test_a_packed_session_is_the_same(client: TestClient, recorded: Recorded, access: Access, tmp_path: Path) -> None:
    """What is downloaded opens elsewhere and answers the same."""
    answer = client.get(recorded.url + "/pack")
    assert answer.headers["content-type"] == "application/zip"
    assert 'filename="slow.stepscope.zip"' in answer.headers["content-disposition"]
    assert zipfile.ZipFile(io.BytesIO(answer.content)).testzip() is None
    packed = tmp_path / "elsewhere.stepscope.zip"
    packed.write_bytes(answer.content)
    other = browser(
        create(Hub(catalogue=SessionCatalogue([tmp_path]), open_sessions=OpenSessions()), access), headers=BEARER
    )
    url = f"/api/v1/sessions/{key_of(packed.resolve())}"
    for resource in ("findings", "tasks", "steps", "resources", "flames", "report?format=html"):
        assert other.get(f"{url}/{resource}").content == client.get(f"{recorded.url}/{resource}").content, resource
    assert other.get(f"{url}/pack").content == answer.content


def test_a_pack_has_any_name(recorded: Recorded, tmp_path: Path) -> None:
    """Folders list a session that was packed as ``good.zip``, and no other zip file."""
    bundle.pack(recorded.path, tmp_path / "good.zip")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as other:
        other.writestr("manifest.json", "{}")
    (tmp_path / "empty.zip").touch()
    assert [brief.name for brief in SessionCatalogue([tmp_path]).briefs() if brief.packed] == ["good"]


def test_tags_spare_the_work(client: TestClient, recorded: Recorded) -> None:
    """What the client has is not sent again, and not even made; another address has another tag."""
    tags = set()
    for path in ("/findings", "/steps?limit=5", "/steps?limit=6", "/report", "/flame", "/summary", "/captures", ""):
        answer = client.get(recorded.url + path)
        tag = answer.headers["etag"]
        again = client.get(recorded.url + path, headers={"If-None-Match": f'"other", {tag}'})
        assert again.status_code == 304, path
        assert again.content == b""
        assert again.headers["etag"] == tag
        tags.add(tag)
    assert len(tags) == 8


def test_a_session_that_changes_has_another_tag(recorded: Recorded, tmp_path: Path) -> None:
    """A new segment, a new report: both are seen."""
    copy = tmp_path / "copy.stepscope"
    shutil.copytree(recorded.path, copy)
    first = revision_of(copy)
    assert revision_of(copy) == first
    (copy / "report.json").write_bytes(b"{}")
    second = revision_of(copy)
    segment = next((copy / "workers").glob("*/records*"))
    segment.rename(segment.with_name(segment.name.replace("records-", "records-9")))
    assert len({first, second, revision_of(copy)}) == 3


def test_the_page_is_told_what_it_will_ask_for_first(client: TestClient, recorded: Recorded) -> None:
    """Browsers load that beside the script: the session, for the timeline what it is; of no other address."""
    at = f"/sessions/{recorded.key}"
    links = client.get(f"{at}/timeline").headers["link"].split(", ")
    assert links == [f"</api/v1{at}{part}>; rel=preload; as=fetch; crossorigin" for part in ("", "/timeline")]
    assert all(client.get(link.partition(">")[0][1:]).status_code == 200 for link in links)
    assert client.get(at).headers["link"] == client.get(f"{at}/code").headers["link"] == links[0]
    for other in ("/", "/compare", "/sessions/0123456789abcdef,", "/sessions/%3E;rel=preload"):
        assert "link" not in client.get(other).headers


def test_the_script_is_compressed(client: TestClient) -> None:
    """For who takes that, the same for everybody."""
    name = next(
        part.split('"')[0] for part in client.get("/").text.split('src="')[1:] if part.split('"')[0].endswith(".js")
    )
    plain = client.get(name, headers={"Accept-Encoding": "identity"})
    packed = client.get(name, headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert (packed.headers["content-encoding"], packed.headers["vary"]) == ("gzip", "Accept-Encoding")
    assert int(packed.headers["content-length"]) < len(plain.content) / 2
    assert packed.content == plain.content
    assert packed.headers["content-type"] == plain.headers["content-type"]
    assert packed.headers["cache-control"].endswith("immutable")


def test_answers_are_compressed(client: TestClient, recorded: Recorded) -> None:
    """For who takes it."""
    plain = client.get(recorded.url + "/series", headers={"Accept-Encoding": "identity"})
    packed = client.get(recorded.url + "/series", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.content == plain.content


WRONG = ("limit=0", "limit=-1", "limit=1e3", "limit= 5", "limit=5&limit=6", "limit=٣", "limit=1001", "x=1", "limit=")


@pytest.mark.parametrize("query", WRONG)
def test_wrong_parameters_are_refused(client: TestClient, recorded: Recorded, query: str) -> None:
    """With the name and what was expected."""
    answer = client.get(f"{recorded.url}/steps?{query}")
    assert answer.status_code == 400
    assert query.partition("=")[0] in answer.json()["detail"]


def test_hostile_sessions_are_listed_as_damaged(access: Access, tmp_path: Path) -> None:
    """A manifest that is none, a link, a name of no encoding: each one line, none stops the list."""
    (tmp_path / "bad.stepscope").mkdir()
    (tmp_path / "bad.stepscope" / "manifest.json").write_text("{")
    (tmp_path / "zip.stepscope.zip").write_bytes(b"PK nothing")
    secret = tmp_path / "secret.json"
    secret.write_text('{"schema_version": 1}')
    (tmp_path / "link.stepscope").mkdir()
    (tmp_path / "link.stepscope" / "manifest.json").symlink_to(secret)
    odd = tmp_path / b"odd\xff.stepscope".decode("utf-8", "surrogateescape")
    odd.mkdir()
    (odd / "manifest.json").write_text('{"schema_version": 99}')
    client = browser(
        create(Hub(catalogue=SessionCatalogue([tmp_path]), open_sessions=OpenSessions()), access), headers=BEARER
    )
    everything = read(client, "/api/v1/sessions")["items"]
    found = {b["name"]: b for b in everything if b["path"].startswith(str(tmp_path))}
    assert {name: b["state"] for name, b in found.items() if name != "odd\ufffd"} == {
        "bad": "damaged", "zip": "damaged", "link": "damaged",
    }  # fmt: skip
    for brief in found.values():
        answer = client.get(f"/api/v1/sessions/{brief['key']}/findings")
        assert answer.status_code == 422, brief
        assert answer.json()["detail"]


def test_an_unfinished_session_is_only_read(recorded: Recorded, access: Access, tmp_path: Path) -> None:
    """Nobody finished it: it is analysed as it lies, not completed, and cannot be packed."""
    copy = tmp_path / "cut.stepscope"
    shutil.copytree(recorded.path, copy)
    manifest = json.loads((copy / "manifest.json").read_bytes())
    (copy / "manifest.json").write_text(json.dumps({**manifest, "state": "running", "run_dir": "/nonexistent"}))
    for name in ("report.json", "report.html", "report.txt", "report.md"):
        (copy / name).unlink()
    before = {str(p): p.stat().st_mtime_ns for p in copy.rglob("*")}
    client = browser(
        create(Hub(catalogue=SessionCatalogue([tmp_path]), open_sessions=OpenSessions()), access), headers=BEARER
    )
    url = f"/api/v1/sessions/{key_of(copy.resolve())}"
    assert read(client, url)["state"] == "unfinished"
    assert read(client, url)["findings"] is None
    assert read(client, url + "/summary")["summary"]["steps"] == STEPS
    assert client.get(url + "/pack").status_code == 409
    assert {str(p): p.stat().st_mtime_ns for p in copy.rglob("*")} == before


def test_a_report_of_another_version_is_made_anew(recorded: Recorded, tmp_path: Path) -> None:
    """A stored report is taken from this version only."""
    copy = tmp_path / "old.stepscope"
    shutil.copytree(recorded.path, copy)
    stored = json.loads((copy / "report.json").read_bytes())
    (copy / "report.json").write_text(json.dumps({**stored, "findings": []}))
    assert OpenSession(copy, "1").report.findings == ()
    manifest = json.loads((copy / "manifest.json").read_bytes())
    (copy / "manifest.json").write_text(json.dumps({**manifest, "stepscope_version": "0.0.1"}))
    assert len(OpenSession(copy, "2").report.findings) == len(stored["findings"]) > 0


def test_few_sessions_stay_open(recorded: Recorded, tmp_path: Path) -> None:
    """Memory is bounded: the one that was asked for least lately goes."""
    catalogue, open_sessions = SessionCatalogue([tmp_path]), OpenSessions()
    for number in range(6):
        shutil.copytree(recorded.path, tmp_path / f"s{number}.stepscope")
    entries = sorted(catalogue.entries().values(), key=lambda e: e.path)
    first = open_sessions.open(entries[0])
    assert open_sessions.open(entries[0]) is first
    for entry in entries[1:]:
        open_sessions.open(entry)
    assert open_sessions.open(entries[0]) is not first


def test_a_session_without_copies_has_no_lines(recorded: Recorded) -> None:
    """While its job runs it holds none: an answer without lines, and no error for a page to complain of."""
    opened = OpenSession(recorded.path, "")
    vars(opened)["session"] = replace(opened.session, sources={})
    found = browse.source(opened, "train.py", 1, 5)
    assert (found.total, found.lines) == (0, ())
