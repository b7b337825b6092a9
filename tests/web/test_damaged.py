"""Sessions that were damaged where they lie, as the server and the command line show them."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from typing import TYPE_CHECKING

import pytest

from stepscope.server.open_sessions import OpenSessions
from stepscope.server.session_catalogue import SessionCatalogue
from stepscope.server.timelines.kept_timelines import Timelines
from stepscope.sessions import bundle
from stepscope.store.bundle import PackedFiles
from stepscope.tables.layout import key_of
from stepscope.web.application import create
from stepscope.web.operation import Hub

from .conftest import PATIENCE_S, TOKEN, browser, command, environment, wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.testclient import TestClient

    from stepscope.web.settings import Access

    from .recorded import Recorded


@pytest.fixture
def packed(recorded: Recorded, tmp_path: Path) -> Path:
    """A packed session one bit of whose records was changed."""
    path, _ = bundle.pack(recorded.path, tmp_path / "slow.stepscope.zip")
    with zipfile.ZipFile(path) as archive:
        entry = next(e for e in archive.infolist() if "/records-" in e.filename)
    data = bytearray(path.read_bytes())
    data[entry.header_offset + 200] ^= 1
    path.write_bytes(data)
    return path


def served(path: Path, access: Access) -> TestClient:
    """A client of a server over one session."""
    hub = Hub(
        catalogue=SessionCatalogue([path]), open_sessions=OpenSessions(), timelines=Timelines(path.parent / "timelines")
    )
    return browser(create(hub, access), headers={"Authorization": f"Bearer {TOKEN}"})


def test_a_damaged_pack_is_listed_as_damaged(packed: Path, access: Access) -> None:
    """Nobody has to open it: the list says that it is damaged, and which of its entries is."""
    client, address = served(packed, access), f"/api/v1/sessions/{key_of(packed.resolve())}"
    wait_for(lambda: client.get(address).json()["state"] == "damaged", "the pack to be checked")
    assert "/records-" in client.get(address).json()["problem"]
    refused = client.get(f"{address}/steps")
    assert (refused.status_code, refused.json()["detail"].startswith(f"damaged: {packed}: ")) == (422, True)


def test_a_whole_pack_is_not(recorded: Recorded, tmp_path: Path, access: Access) -> None:
    """A pack as it was written stays what its manifest says, checked or not."""
    path, _ = bundle.pack(recorded.path, tmp_path / "whole.stepscope.zip")
    client, address = served(path, access), f"/api/v1/sessions/{key_of(path.resolve())}"
    assert client.get(address).json()["state"] == "finished"
    with PackedFiles(path) as files:
        files.check()
    assert client.get(f"{address}/steps").status_code == 200
    brief = client.get(address).json()
    assert (brief["state"], brief["problem"]) == ("finished", "")


def test_a_cut_table_shows_once_the_session_is_opened(recorded: Recorded, tmp_path: Path, access: Access) -> None:
    """A directory whose table was cut is called damaged from the moment that somebody has looked into it."""
    path = shutil.copytree(recorded.path, tmp_path / "cut.stepscope")
    table = next((path / "tables").glob("host-*"))
    table.write_bytes(table.read_bytes()[:-20])
    client, address = served(path, access), f"/api/v1/sessions/{key_of(path.resolve())}"
    assert client.get(f"{address}/steps").status_code == 200
    brief = client.get(address).json()
    assert (brief["state"], table.name in brief["problem"]) == ("damaged", True)


@pytest.mark.parametrize("words", ["report", "flame", "memory"])
def test_commands_end_with_65(packed: Path, words: str) -> None:
    """Commands that open a damaged pack say which file and entry it is, and show nothing."""
    ended = subprocess.run(
        command(words, str(packed)), env=environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (ended.returncode, ended.stdout) == (65, "")
    assert ended.stderr.startswith(f"stepscope: damaged: {packed}: the entry 'workers/")
