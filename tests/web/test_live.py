"""A job that runs: listed, streamed, asked for captures, read by Prometheus."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from stepscope.model.api.capture_ask import OF_SIDECARS, CaptureAsk
from stepscope.web.job_operations import CaptureWanted

from .conftest import wait_for

if TYPE_CHECKING:
    from starlette.testclient import TestClient


def events(text: str) -> list[tuple[str, Any]]:
    """Name and data of server-sent events."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if "event" in fields:
            found.append((fields["event"], json.loads(fields["data"])))
    return found


def test_a_job_is_listed_with_its_session(client: TestClient, live: int) -> None:
    """The same job as ps lists; its session is among the sessions, running, though it lies in no folder given."""
    jobs = {job["pid"]: job for job in client.get("/api/v1/jobs").json()["items"]}
    job = jobs[live]
    assert job["name"] == "endless.py"
    assert job["status"]["session"].endswith("endless.stepscope")
    assert client.get(f"/api/v1/jobs/{live}").json()["pid"] == live
    brief = client.get(f"/api/v1/sessions/{job['session']}").json()
    assert brief["state"] == "running"
    assert brief["pid"] == live
    assert job["session"] in {b["key"] for b in client.get("/api/v1/sessions?state=running").json()["items"]}


def test_a_live_job_opens_as_a_session(client: TestClient, live: int) -> None:
    """What it has written so far is read like a session at rest."""
    key = client.get(f"/api/v1/jobs/{live}").json()["session"]
    wait_for(lambda: client.get(f"/api/v1/sessions/{key}/steps").json().get("total"), "steps on disk")
    summary = client.get(f"/api/v1/sessions/{key}/summary").json()
    assert summary["brief"]["pid"] == live
    assert client.get(f"/api/v1/sessions/{key}/pack").status_code == 409


def test_changes_are_streamed(client: TestClient, live: int) -> None:
    """One event for each status that its sidecar publishes, with the steps going up."""
    answer = client.get(f"/api/v1/jobs/{live}/events", params={"limit": 2})
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert "content-encoding" not in answer.headers
    got = events(answer.text)
    assert [name for name, _ in got] == ["job", "job"]
    assert {data["pid"] for _, data in got} == {live}
    assert got[0][1]["status"]["updated_unix_s"] < got[1][1]["status"]["updated_unix_s"]


def test_a_capture_is_asked_for(client: TestClient, live: int) -> None:
    """The sidecar takes the request; its status tells what became of it. Without TensorFlow: that there is nothing."""
    answer = client.post(f"/api/v1/jobs/{live}/captures", json={"steps": 3})
    assert answer.status_code == 202, answer.text
    request = answer.json()["request"]

    def told() -> list[dict[str, Any]]:
        live_ones = client.get(f"/api/v1/jobs/{live}/captures").json()["live"]
        return [c for c in live_ones if c["request"] == request and c["text"]]

    assert wait_for(told, "an answer of the sidecar")


def test_a_wrong_wish_is_refused(client: TestClient, live: int) -> None:
    """Unknown fields, numbers out of bounds, no JSON."""
    url = f"/api/v1/jobs/{live}/captures"
    wrong: tuple[object, ...] = (
        {"steps": -1}, {"steps": 10_000}, {"steps": 1.5}, {"kind": "everything"}, {"stepz": 1}, {"seconds": 1e9}, [], 1,
    )  # fmt: skip
    for body in wrong:
        assert client.post(url, json=body).status_code == 400, body
    json_type = {"Content-Type": "application/json"}
    for content in (b"", b"{", b"[" * 5_000, b'{"task": "\xff"}'):
        assert client.post(url, content=content, headers=json_type).status_code == 400, content


def test_whatever_trace_can_ask_for_can_be_asked() -> None:
    """The body has a field for each of a request that a person sets."""
    assert {*CaptureWanted.__struct_fields__, "id"} == set(CaptureAsk.__struct_fields__) - OF_SIDECARS


def test_no_job_no_stream(client: TestClient) -> None:
    """A pid of no measured job."""
    for path in ("", "/events", "/captures"):
        assert client.get(f"/api/v1/jobs/1{path}").status_code == 404
    assert client.get("/api/v1/jobs/none/events").status_code == 404


def test_metrics(client: TestClient, live: int) -> None:
    """Prometheus reads steps, state and cost of the job."""
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    labels = f'pid="{live}",session="endless.stepscope"'
    lines = answer.text.splitlines()
    assert any(line.startswith("stepscope_steps_total{" + labels + "}") for line in lines)
    assert any(line.startswith("stepscope_job_info{") and 'name="endless.py"' in line for line in lines)
    assert any(line.startswith("stepscope_sidecar_core_ratio{" + labels + "}") for line in lines)
