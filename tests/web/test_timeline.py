"""The timeline by REST: built when it is asked for, tiles that stay, refusals that say why."""

from __future__ import annotations

import threading
from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec
import pytest

from stepscope.model.api.timeline import LeftOut, Timeline
from stepscope.server.timelines import timeline_tiles

from .conftest import PATIENCE_S

if TYPE_CHECKING:
    from starlette.testclient import TestClient

    from .recorded import Recorded


@pytest.fixture(scope="module")
def timeline(client: TestClient, recorded: Recorded) -> Timeline:
    """The recorded session's, ready."""
    for _ in range(int(PATIENCE_S / 10)):
        said = msgspec.json.decode(client.get(f"{recorded.url}/timeline?wait_s=10").content, type=Timeline)
        if said.state != "building":
            break
    assert said.state == "ready", said
    return said


def test_tracks_and_names(client: TestClient, recorded: Recorded, timeline: Timeline) -> None:
    """The steps, the main thread, what is left out; names page by page."""
    assert [track.kind for track in timeline.tracks] == ["steps", "derived", "thread"]
    assert timeline.spans == sum(track.spans for track in timeline.tracks) == 2093
    assert timeline.left_out == (LeftOut(what="stack samples: they are in the flame graph", count=100),)
    page = client.get(f"{recorded.url}/timeline/names?build={timeline.build}&limit=2").json()
    assert len(page["items"]) == 2
    assert page["next_offset"] == 2
    assert page["total"] == timeline.names == 7


def test_a_tile_stays_what_it_is(client: TestClient, recorded: Recorded, timeline: Timeline) -> None:
    """Browsers may keep it for ever; it is not compressed; another build has no such tile."""
    path = f"{recorded.url}/timeline/tile?build={{}}&level=20&tile=0&group=0"
    answer = client.get(path.format(timeline.build))
    assert answer.headers["cache-control"].endswith("immutable")
    assert answer.headers["content-encoding"] == "identity"
    assert answer.content[:4] == b"SSTL"
    gone = client.get(path.format("0" * 20))
    assert gone.status_code == HTTPStatus.NOT_FOUND
    assert "/timeline" in gone.json()["detail"]


def test_a_large_tile_is_made_beside_the_others(
    client: TestClient, recorded: Recorded, timeline: Timeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a thread; it says the same, and may be kept as well."""
    path = f"{recorded.url}/timeline/tile?build={timeline.build}&level=24&tile=0&group=0"
    small = client.get(path)
    threads = []
    made = timeline_tiles.Tile.encoded

    def watched(of: timeline_tiles.Tile) -> bytes:
        threads.append(threading.current_thread())
        return made(of)

    monkeypatch.setattr(timeline_tiles, "MOST_AT_ONCE", 0)
    monkeypatch.setattr(timeline_tiles.Tile, "encoded", watched)
    large = client.get(path)
    assert large.content == small.content
    assert large.headers["cache-control"] == small.headers["cache-control"]
    assert "worker" in threads[0].name


def test_another_session_has_no_tile_of_it(client: TestClient, recorded: Recorded, timeline: Timeline) -> None:
    """A build alone opens nothing."""
    path = f"{recorded.url}/timeline/tile?build={timeline.build}&level=24&tile=0&group=0"
    assert client.get(path.replace(recorded.key, "0" * 16)).status_code == HTTPStatus.NOT_FOUND


@pytest.mark.parametrize(
    "asked",
    ["tile?level=46&tile=8796093022208&group=0", "tile?level=20&tile=0&group=9", "span?lane=99", "span?lane=0&row=9999",
     "statistics?first_lane=90&lanes=3", "curves?level=46&tile=8796093022208"],
)  # fmt: skip
def test_what_is_not_there_is_refused(client: TestClient, recorded: Recorded, timeline: Timeline, asked: str) -> None:
    """With what there is."""
    answer = client.get(f"{recorded.url}/timeline/{asked}&build={timeline.build}")
    assert answer.status_code == HTTPStatus.NOT_FOUND
    assert answer.json()["detail"]


def test_resources_have_curves_and_numbers(client: TestClient, recorded: Recorded, timeline: Timeline) -> None:
    """The job's one core, as it was sampled."""
    assert [(one.key, one.unit, one.samples) for one in timeline.series] == [("cpu", "cores", 6)]
    answer = client.get(f"{recorded.url}/timeline/curves?build={timeline.build}&level=30&tile=0")
    assert answer.headers["cache-control"].endswith("immutable")
    assert answer.headers["content-encoding"] == "identity"
    assert answer.content[:4] == b"SSTC"
    (row,) = client.get(f"{recorded.url}/timeline/resources?build={timeline.build}").json()["items"]
    assert row == {"key": "cpu", "low": 1.0, "mean": 1.0, "high": 1.0, "samples": 6}


def test_search_statistics_and_evidence(client: TestClient, recorded: Recorded, timeline: Timeline) -> None:
    """What the callback costs, and where the finding about it leads."""
    build = timeline.build
    found = client.get(f"{recorded.url}/timeline/search?build={build}&q=plot&limit=3").json()
    assert found["total"] == 300
    assert len(found["items"]) == 3
    rows = client.get(f"{recorded.url}/timeline/statistics?build={build}").json()["items"]
    plot = next(row for row in rows if "Plot" in row["text"])
    assert (plot["count"], plot["max_ns"]) == (300, 7_000_000)
    findings = client.get(f"{recorded.url}/findings").json()["items"]
    refs = [ref for finding in findings for row in finding["evidence"] for ref in row["refs"]]
    assert refs
    for ref in refs:
        place = client.get(f"{recorded.url}/timeline/evidence?build={build}&ref={ref}").json()
        assert place["found"], ref
        span = client.get(f"{recorded.url}/timeline/span?build={build}&lane={place['lane']}&at_ns={place['start_ns']}")
        assert span.json()["span"]["start_ns"] == place["start_ns"]
