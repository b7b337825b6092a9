"""What a user writes to sessions, how they are sorted and found by it, and how a session is deleted."""

from __future__ import annotations

import json
import shutil
import threading
from http import HTTPStatus
from typing import TYPE_CHECKING

import pytest

from stepscope.model.api.rest_api import SessionLabel
from stepscope.server.open_sessions import OpenSessions
from stepscope.server.session_catalogue import SORTS, SessionCatalogue
from stepscope.server.session_labels import SessionLabels
from stepscope.tables.errors import UsageError
from stepscope.tables.layout import key_of
from stepscope.web.application import create
from stepscope.web.operation import Hub

from .conftest import TOKEN, browser

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.testclient import TestClient

    from stepscope.web.settings import Access

    from .recorded import Recorded

SESSIONS = "/api/v1/sessions"


@pytest.fixture
def folder(recorded: Recorded, tmp_path: Path) -> Path:
    """Two sessions of different ids."""
    place = tmp_path / "sessions"
    for name, identity, rate in (("one", "id-1", 10.0), ("two", "id-2", None)):
        path = place / f"{name}.stepscope"
        shutil.copytree(recorded.path, path)
        manifest = json.loads((path / "manifest.json").read_text())
        (path / "manifest.json").write_text(
            json.dumps({**manifest, "id": identity, "command": ["python", "a.py", name]})
        )
        report = json.loads((path / "report.json").read_text())
        report["session"]["throughput"]["samples_per_s"] = rate
        (path / "report.json").write_text(json.dumps(report))
    return place


@pytest.fixture
def served(folder: Path, access: Access, tmp_path: Path) -> TestClient:
    """A server over them."""
    catalogue = SessionCatalogue([folder], SessionLabels(tmp_path / "state" / "labels.json"))
    app = create(Hub(catalogue=catalogue, open_sessions=OpenSessions()), access)
    return browser(app, headers={"Authorization": f"Bearer {TOKEN}"})


def names(client: TestClient, query: str = "") -> list[str]:
    """Names of the listed sessions of the folder, in their order; jobs that run on this machine are listed as well."""
    items = client.get(f"{SESSIONS}{query}").json()["items"]
    return [item["name"] for item in items if "/sessions/" in item["path"] and item["name"] in {"one", "two", "moved"}]


def test_a_label_is_kept_and_found(served: TestClient, folder: Path, tmp_path: Path) -> None:
    """Under the session's id: it stays when the session is moved. Nothing is written into the session."""
    path = folder / "one.stepscope"
    before = sorted((p.name, p.stat().st_mtime_ns) for p in path.rglob("*"))
    label = {"name": "Baseline", "tags": ["v100", "loader"], "note": "before the change"}
    found = served.post(f"{SESSIONS}/{key_of(path)}/label", json=label)
    assert (found.status_code, found.json()["label"]) == (HTTPStatus.OK, label)
    assert sorted((p.name, p.stat().st_mtime_ns) for p in path.rglob("*")) == before
    assert names(served, "?q=loader+baseline") == ["one"]
    path.rename(folder / "moved.stepscope")
    assert names(served, "?q=loader") == ["moved"]
    kept = SessionLabels(tmp_path / "state" / "labels.json")
    assert kept.of("id-1").note == "before the change"
    kept.set("id-1", SessionLabel())
    assert names(served, "?q=loader") == []


@pytest.mark.parametrize("wrong", [{"tags": [""]}, {"tags": ["x"] * 21}, {"name": "n" * 201}, {"owner": "me"}, []])
def test_wrong_labels_are_refused(served: TestClient, folder: Path, wrong: object) -> None:
    """Nothing is kept of them."""
    answer = served.post(f"{SESSIONS}/{key_of(folder / 'one.stepscope')}/label", json=wrong)
    assert answer.status_code == HTTPStatus.BAD_REQUEST


def test_arguments_and_sorting(served: TestClient) -> None:
    """Arguments tell one script's runs apart; sessions without a value come last, whichever way."""
    items = served.get(SESSIONS).json()["items"]
    found = {item["name"]: item["arguments"] for item in items}
    assert (found["one"], found["two"]) == ("one", "two")
    for order in ("down", "up"):
        assert names(served, f"?sort=samples_per_s&order={order}") == ["one", "two"]
    assert names(served, "?sort=name&order=up") == ["one", "two"]
    assert names(served, "?sort=name&order=down") == ["two", "one"]
    assert all(len(names(served, f"?sort={sort}")) == 2 for sort in SORTS)


def test_a_session_is_deleted_by_its_name(served: TestClient, folder: Path) -> None:
    """Another name deletes nothing; after it, the session is gone from disk and list, and the other one is there."""
    path = folder / "one.stepscope"
    url = f"{SESSIONS}/{key_of(path)}"
    assert served.delete(url).status_code == HTTPStatus.BAD_REQUEST
    refused = served.delete(f"{url}?name=two")
    assert (refused.status_code, path.is_dir()) == (HTTPStatus.CONFLICT, True)
    assert "nothing was deleted" in refused.json()["detail"]
    assert served.delete(f"{url}?name=one").status_code == HTTPStatus.OK
    assert sorted(p.name for p in folder.iterdir()) == ["two.stepscope"]
    assert names(served) == ["two"]
    assert served.delete(f"{url}?name=one").status_code == HTTPStatus.NOT_FOUND


def test_a_link_is_not_followed(served: TestClient, folder: Path, tmp_path: Path) -> None:
    """What it leads to may be anybody's."""
    elsewhere = tmp_path / "elsewhere"
    shutil.move(folder / "one.stepscope", elsewhere)
    (folder / "one.stepscope").symlink_to(elsewhere)
    answer = served.delete(f"{SESSIONS}/{key_of(folder / 'one.stepscope')}?name=one")
    assert (answer.status_code, elsewhere.is_dir()) == (HTTPStatus.CONFLICT, True)


def test_a_running_job_keeps_its_session(client: TestClient, live: int) -> None:
    """It is written to."""
    key = next(job["session"] for job in client.get("/api/v1/jobs").json()["items"] if job["pid"] == live)
    name = client.get(f"{SESSIONS}/{key}").json()["name"]
    answer = client.delete(f"{SESSIONS}/{key}?name={name}")
    assert answer.status_code == HTTPStatus.CONFLICT
    assert "running" in answer.json()["detail"]


def test_labels_of_several_servers_add_up(tmp_path: Path) -> None:
    """Each reads what the others wrote before it writes."""
    file = tmp_path / "labels.json"
    writers = [
        threading.Thread(target=lambda i=i: SessionLabels(file).set(str(i), SessionLabel(note=str(i))))
        for i in range(8)
    ]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    assert {SessionLabels(file).of(str(i)).note for i in range(8)} == set(map(str, range(8)))
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """And damaged labels are none."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="can be written"):
        SessionLabels(tmp_path / "file" / "labels.json").set("a", SessionLabel(note="n"))
    (tmp_path / "labels.json").write_text("{")
    assert SessionLabels(tmp_path / "labels.json").of("a") == SessionLabel()
