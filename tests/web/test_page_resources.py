"""What single pages ask for says the same as the commands: stacks, code, memory, two sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.web.conftest import TOKEN, browser
from tests.web.reading import read

from stepscope.server.open_sessions import OpenSessions
from stepscope.server.session_catalogue import SessionCatalogue
from stepscope.web.application import create
from stepscope.web.operation import Hub

if TYPE_CHECKING:
    from starlette.testclient import TestClient
    from tests.web.recorded import Recorded

    from stepscope.web.settings import Access

Pair = tuple["Recorded", "Recorded"]


@pytest.fixture(scope="module")
def asked(pair: Pair, access: Access) -> TestClient:
    """Who knows the token of a server over both."""
    app = create(Hub(catalogue=SessionCatalogue([one.path for one in pair]), open_sessions=OpenSessions()), access)
    return browser(app, headers={"Authorization": f"Bearer {TOKEN}"})


def test_stacks_are_those_of_the_flame_graph(asked: TestClient, pair: Pair) -> None:
    """The tree holds what is written for other tools, to the last sample, and says what of it has no name."""
    url = pair[0].url
    tree = read(asked, f"{url}/stacks?event=cpu&window=all")
    folded = asked.get(f"{url}/flame?event=cpu&window=all&format=folded").text
    written: dict[str, float] = {}
    for line in folded.splitlines():
        stack, _, weight = line.rpartition(" ")
        written[stack.split(";")[-1]] = written.get(stack.split(";")[-1], 0.0) + float(weight)
    held: dict[str, float] = {}
    for frame, own in zip(tree["frame"], tree["own"], strict=True):
        if own:
            name = tree["strings"][tree["frames"][frame][0]]
            held[name] = held.get(name, 0.0) + own
    assert held == {"dnnl::matmul": 330.0, "[libz.so.1]": 96.0, "malloc": 64.0} == written
    assert tree["weight"] == sum(tree["own"]) == tree["samples"] == 490
    assert tree["unresolved_ratio"] == pytest.approx(96 / 490)
    assert tree["health"][0] == "20 % end in an unnamed frame"
    assert tree["doubtful"]
    assert {kind["name"] for kind in tree["kinds"]} >= {"math", "native", "allocator"}
    unnamed = [tree["strings"][frame[0]] for frame in tree["frames"] if not frame[5]]
    assert unnamed == ["[libz.so.1]"]
    assert all(above < at for at, above in enumerate(tree["parent"]))


def test_stacks_by_thread_hold_the_same_weight(asked: TestClient, pair: Pair) -> None:
    """Threads are counted either way; only asked for do stacks stand below them, and waits are said only there."""
    plain, apart = (read(asked, f"{pair[0].url}/stacks?event=python{more}") for more in ("", "&by=thread"))
    assert plain["threads"] == apart["threads"] >= 1
    assert plain["weight"] == pytest.approx(sum(apart["own"]))
    assert plain["waits"] == ""
    assert asked.get(f"{pair[0].url}/stacks?by=process").status_code == 400


def test_an_event_that_is_not_there(asked: TestClient, pair: Pair) -> None:
    """What there is instead is said."""
    answer = asked.get(f"{pair[0].url}/stacks?event=madvise")
    assert answer.status_code == 404
    assert "cpu" in answer.json()["detail"]


def test_files_hold_cost_and_findings_of_their_lines(asked: TestClient, pair: Pair) -> None:
    """The heat is the report's, the finding marks every line of its place."""
    (file,) = read(asked, f"{pair[0].url}/files")["items"]
    report = read(asked, f"{pair[0].url}/report")
    assert (file["file"], file["lines"]) == ("train.py", 80)
    heat = {row["line"]: row["ratio"] for row in report["line_heat"]}
    assert {row["line"]: row["ratio"] for row in file["known"] if row["ratio"]} == heat
    place = report["findings"][0]["where"][0]
    marked = [row["line"] for row in file["known"] if 1 in row["findings"]]
    assert marked == list(range(place["line"], place["end_line"] + 1))


def test_memory_is_the_reports(asked: TestClient, pair: Pair) -> None:
    """The same maps, with the sentences of the terminal."""
    (shown,) = read(asked, f"{pair[0].url}/memory")["items"]
    assert shown["map"] == read(asked, f"{pair[0].url}/report")["memory"][0]
    assert shown["layout"][0].startswith("padded: 9 anonymous mappings")
    assert shown["growth"].startswith("6 to 9 mappings")
    assert len(shown["sizes"]) == len(shown["map"]["sizes"])


def test_two_sessions_are_held_against_each_other(asked: TestClient, pair: Pair) -> None:
    """What sampling noise explains is no change; what it does not is told with its function."""
    before, after = (one.key for one in pair)
    same = read(asked, f"/api/v1/compare?before={before}&after={after}&event=cpu")
    assert (same["before"]["key"], same["after"]["key"]) == (before, after)
    assert same["events"] == ["cpu", "python"]
    assert same["stacks"]["verdict"] == "No significant change in cpu"
    assert same["stacks"]["changes"] == []
    other = read(asked, f"/api/v1/compare?before={before}&after={after}&event=python")["stacks"]
    (less,) = (change for change in other["changes"] if change["function"] == "draw")
    assert less["own_after"] < less["own_before"]
    page = asked.get(f"/api/v1/compare/flame?before={before}&after={after}&event=python")
    assert "draw" in page.text
    assert "sandbox" in page.headers["content-security-policy"]
    itself = read(asked, f"/api/v1/compare?before={before}&after={before}")
    assert itself["stacks"]["changes"] == []


def test_what_cannot_be_compared(asked: TestClient, pair: Pair) -> None:
    """A key of none, an event that one of them lacks, no key: refused with a sentence."""
    before, after = (one.key for one in pair)
    for query, status in (
        (f"before={before}&after={'0' * 16}", 404),
        (f"before={before}&after={after}&event=madvise", 404),
        (f"before={before}", 400),
        (f"before={before}&after=nothing", 400),
    ):
        answer = asked.get(f"/api/v1/compare?{query}")
        assert answer.status_code == status, answer.text
        assert answer.json()["detail"]


def test_what_has_not_changed_is_not_made_again(asked: TestClient, pair: Pair) -> None:
    """By tag: of every one of them."""
    before, after = pair
    both = f"before={before.key}&after={after.key}"
    pages = [f"{before.url}/{name}" for name in ("stacks", "files", "memory")]
    for path in (*pages, f"/api/v1/compare?{both}", f"/api/v1/compare/flame?{both}"):
        tag = asked.get(path).headers["etag"]
        assert asked.get(path, headers={"If-None-Match": tag}).status_code == 304, path
