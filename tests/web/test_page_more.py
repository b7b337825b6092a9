"""The flame graph, code, memory and compare pages in a real browser: what is clicked stands in the address, and back
leads out of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec
import pytest
from tests.web.browser import AXE, CHROMIUM, FITS, FLAGS, NAMELESS, SERIOUS, Tab, tab_of

from stepscope.model.report.op_table import MakerTime, OpTable, OpTime, TypeTime

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route
    from tests.web.recorded import Recorded

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine (make system-deps)"),
]
Pair = tuple["Recorded", "Recorded"]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The system's chromium, without a window."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture
def tab(chromium: Browser, url: str) -> Iterator[Tab]:
    """A tab in which nothing goes wrong."""
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    found = tab_of(context, url)
    yield found
    assert found.problems == []
    context.close()


def gone(tab: Tab, part: str) -> None:
    """Wait until the address has lost a part of its state."""
    tab.page.wait_for_url(lambda url: part not in url)


def test_flame_graph(tab: Tab, pair: Pair) -> None:
    """Event, search with its share, zoom by mouse and keyboard, the other way around; what has no name is said."""
    page = tab.page
    tab.open(f"/sessions/{pair[0].key}")
    page.get_by_role("link", name="Flame graph").click()
    page.wait_for_url("**/flame")
    page.locator(".flame canvas").wait_for()
    page.get_by_role("combobox", name="Event").select_option("cpu")
    page.wait_for_url("**/flame?event=cpu")
    page.get_by_text("20 % end in an unnamed frame").wait_for()
    page.get_by_label("Search").fill("malloc")
    page.get_by_text("1 match, 13 % of the total").wait_for()
    assert "find=malloc" in tab.query()
    graph = page.get_by_role("application")
    graph.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight"):
        graph.press(key)
    page.locator(".now", has_text="[libz.so.1] 20 %").wait_for()
    graph.press("Enter")
    page.wait_for_url("**&at=*")
    page.get_by_role("button", name="Show all").click()
    gone(tab, "at=")
    canvas = page.locator(".flame canvas")
    canvas.click(position={"x": 40, "y": 18 * 3 + 9})
    page.wait_for_url("**&at=*")
    page.locator(".now", has_text="dnnl::matmul 67 %").wait_for()
    page.mouse.move(5, 5)
    page.go_back()
    gone(tab, "at=")
    page.locator(".now", has_text="all 100 %").wait_for()
    page.get_by_role("button", name="Innermost first").click()
    page.wait_for_url("**&invert=1")
    canvas.hover(position={"x": 40, "y": 18 + 9})
    page.locator(".now", has_text="dnnl::matmul 67 %").wait_for()
    assert page.get_by_role("row", name=re.compile("malloc")).inner_text().split()[1:3] == ["13", "%"]


def test_flame_graph_by_thread(tab: Tab, recorded: Recorded) -> None:
    """Stacks stand below their threads, waits are boxes; a button takes both away."""
    page = tab.page
    strings = ["[MainThread]", "", "step", "[waits]", "[pool: 2 threads]"]
    told = {"event": "python", "unit": "ns", "window": "all", "samples": 4, "weight": 4e9, "unresolved_ratio": 0}
    told |= {"health": [], "doubtful": False, "merged": "", "kinds": [], "threads": 2, "strings": strings}
    told |= {"frames": [[0, 1, 0, 1, 0, 1], [2, 1, 0, 1, 1, 1], [3, 1, 0, 1, 0, 1], [4, 1, 0, 1, 0, 1]]}
    told |= {"parent": [-1, 0, 1, -1], "frame": [0, 1, 2, 3], "own": [0, 1e9, 2e9, 1e9]}
    told |= {"waits": "Boxes [waits]: the thread was on no CPU, 50 % of the time shown."}
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        route.fulfill(body=json.dumps(told), content_type="application/json")

    page.route("**/stacks?**", answer)
    tab.open(f"/sessions/{recorded.key}/flame")
    page.get_by_text("on no CPU, 50 %").wait_for()
    graph = page.get_by_role("application")
    graph.focus()
    graph.press("ArrowDown")
    page.locator(".now", has_text="[MainThread] 75 %").wait_for()
    graph.press("ArrowDown")
    graph.press("ArrowDown")
    page.locator(".now", has_text="[waits] 50 %").wait_for()
    assert page.get_by_role("row", name=re.compile("waits")).inner_text().split()[1:3] == ["50", "%"]
    assert "by=thread" in asked[-1]
    page.get_by_role("button", name="By thread", pressed=True).click()
    page.wait_for_url("**threads=0**")
    page.get_by_role("button", name="By thread", pressed=False).wait_for()
    assert "by=thread" not in asked[-1]


def test_code(tab: Tab, recorded: Recorded) -> None:
    """Lines with their cost; a finding's mark leads to its evidence, and back to the lines."""
    page = tab.page
    tab.open(f"/sessions/{recorded.key}")
    page.get_by_role("link", name="Code").click()
    page.wait_for_url("**/code")
    page.locator(".code .hot").first.wait_for()
    assert page.locator(".code .line").count() == 80
    assert page.locator(".code .hot").count() == 5 + 1  # the callback's lines, and the loop's in a general finding
    line = page.locator("#line-33")
    assert "line_33 = 33" in line.inner_text()
    assert "100 %" in line.inner_text()
    mark = page.locator(".code .mark")
    assert mark.count() == 2
    mark.first.click()
    page.wait_for_url("**?finding=1")
    page.get_by_role("heading", name="Evidence").wait_for()
    page.go_back()
    page.locator(".code .hot").first.wait_for()
    tab.open(f"/sessions/{recorded.key}/code?file=/job/train.py&line=70")
    page.locator("#line-70.chosen").wait_for()
    assert page.locator("#line-70").evaluate("e => e.getBoundingClientRect().top < innerHeight")


def test_memory(tab: Tab, pair: Pair) -> None:
    """Every region as a strip, the sentences of the terminal, growth as a chart."""
    page = tab.page
    tab.open(f"/sessions/{pair[0].key}")
    page.get_by_role("link", name="Memory").click()
    page.wait_for_url("**/memory")
    page.get_by_text("padded: 9 anonymous mappings").wait_for()
    assert page.locator(".strip").count() >= 1
    titles = page.locator(".chart figcaption b").all_inner_texts()
    assert {"Address space", "Mappings"} <= set(titles)


def test_no_look_at_memory(tab: Tab, recorded: Recorded) -> None:
    """It says so, and what to do."""
    tab.open(f"/sessions/{recorded.key}/memory")
    tab.page.get_by_text("The job's memory was not mapped").wait_for()


def test_compare(tab: Tab, pair: Pair) -> None:
    """Chosen by hand: numbers, the finding that is gone, the function that changed; swapped by a button."""
    page = tab.page
    before, after = (one.key for one in pair)
    tab.open("/")
    page.get_by_role("link", name="Compare two sessions").click()
    page.wait_for_url("**/compare")
    page.get_by_role("combobox", name="Before").select_option(before)
    page.get_by_role("combobox", name="After").select_option(after)
    page.wait_for_url(f"**/compare?before={before}&after={after}")
    row = page.get_by_role("row", name=re.compile("^callbacks"))
    row.wait_for()
    assert row.inner_text().split("\t")[1:] == [
        "7 ms",
        "2 ms",
        "\u221271.4 %",
        "\u221280.2 % to \u221258.9 %",  # one run a side: as if runs differed by a tenth
        "faster",
    ]
    assert page.locator(".answer").inner_text().startswith("Undecided: +0.0 % time")
    same = page.get_by_role("row", name=re.compile("^compute"))
    assert "undecided" in same.inner_text()
    page.get_by_label("only what changed").check()
    same.wait_for(state="detached")
    page.get_by_role("searchbox", name="Find").fill("callbacks")
    page.get_by_text("1 of ").wait_for()
    page.get_by_label("only what changed").uncheck()
    page.get_by_role("searchbox", name="Find").fill("")
    page.get_by_role("combobox", name="Event").select_option("python")
    page.get_by_role("row", name=re.compile("^draw")).wait_for()
    page.get_by_role("button", name="Swap").click()
    page.wait_for_url(f"**/compare?before={after}&after={before}**")
    page.get_by_role("row", name=re.compile("^callbacks")).get_by_text("3.5 x", exact=True).first.wait_for()
    page.go_back()
    page.wait_for_url(f"**/compare?before={before}&after={after}**")
    page.get_by_role("row", name=re.compile("^callbacks")).get_by_text("71.4 %").first.wait_for()


TABLE = OpTable(
    trace="ops-001",
    steps=10,
    ns=1_000_000_000,
    joined_ratio=0.9,
    named_ratio=0.8,
    makers=(
        MakerTime(layer="dense", layer_type="Dense", file="train.py", line=30, calls=20, ns=600_000_000, ratio=0.6),
        MakerTime(layer="dense", layer_type="Dense", file="train.py", line=31, calls=20, ns=200_000_000, ratio=0.2),
    ),
    ops=(
        OpTime(
            name="a/MatMul",
            type="MatMul",
            file="train.py",
            line=30,
            device="/host:CPU",
            calls=10,
            ns=600_000_000,
            ratio=0.6,
        ),
        OpTime(name="b/Relu", type="Relu", device="/host:CPU", calls=90, ns=300_000_000, ratio=0.3),
    ),
    types=(TypeTime(type="MatMul", calls=10, ns=600_000_000, ratio=0.6),),
)


def test_ops(tab: Tab, recorded: Recorded) -> None:
    """The report's own table by each grouping, sorted, searched, with links to lines; each adds up to all of it."""
    page = tab.page
    page.route(
        "**/api/v1/sessions/*/ops",
        lambda route: route.fulfill(body=msgspec.json.encode(TABLE), content_type="application/json"),
    )
    tab.open(f"/sessions/{recorded.key}/ops")
    rows = page.locator("tbody tr")
    rows.first.wait_for()
    names = rows.locator("b").all_inner_texts
    assert names() == ["a/MatMul", "b/Relu", "all others"]
    assert "60 %" in rows.first.inner_text()
    page.get_by_role("button", name="Calls").click()
    page.wait_for_url("**sort=calls")
    assert names()[0] == "b/Relu"
    page.get_by_label("Find").fill("matmul")
    page.wait_for_url("**find=matmul**")
    assert names() == ["a/MatMul"]
    page.get_by_role("link", name="train.py:30").click()
    page.locator("#line-30.chosen").wait_for()
    for way, first in (("type", "MatMul"), ("layer", "dense"), ("line", "train.py:30"), ("device", "/host:CPU")):
        tab.open(f"/sessions/{recorded.key}/ops?by={way}")
        rows.first.wait_for()
        assert names()[0] == first
        assert names()[-1] == "all others"
    assert tab.page.evaluate(FITS) <= 0
    assert tab.page.evaluate(NAMELESS) == []
    page.evaluate(AXE.read_text())
    assert page.evaluate(SERIOUS) == []
    assert tab.problems == []


def test_ops_of_the_input_are_apart_from_the_models(tab: Tab, recorded: Recorded) -> None:
    """By layer the model's are shown, with their share of the model; the input's are one click away; names wrap."""
    long = f"StatefulPartitionedCall/{'x' * 200}"
    table = msgspec.structs.replace(
        TABLE,
        input_ratio=0.5,
        makers=(
            MakerTime(file="train.py", line=8, input=True, calls=9, ns=500_000_000, ratio=0.5),
            MakerTime(layer="dense", file="train.py", line=30, calls=20, ns=400_000_000, ratio=0.4),
        ),
        ops=(OpTime(name=long, type="PyFunc", input=True, calls=9, ns=500_000_000, ratio=0.5),),
    )
    tab.page.route(
        "**/api/v1/sessions/*/ops",
        lambda route: route.fulfill(body=msgspec.json.encode(table), content_type="application/json"),
    )
    tab.open(f"/sessions/{recorded.key}/ops")
    rows = tab.page.locator("tbody tr")
    rows.first.wait_for()
    assert "input pipeline" in rows.first.inner_text()
    assert tab.page.locator(".table").evaluate("place => place.scrollWidth - place.clientWidth") <= 0
    tab.page.get_by_role("button", name="By layer").click()
    tab.page.get_by_role("columnheader", name="Of the model's").wait_for()
    assert rows.locator("b").all_inner_texts() == ["dense", "all others"]
    assert "80 %" in rows.first.inner_text()
    tab.page.get_by_role("button", name="The input's 50 %").click()
    tab.page.wait_for_url("**of=input**")
    assert rows.locator("b").all_inner_texts() == ["input pipeline"]
    assert "100 %" in rows.first.inner_text()


def test_no_op_trace(tab: Tab, recorded: Recorded) -> None:
    """A session without an op trace says how to take one."""
    tab.open(f"/sessions/{recorded.key}/ops")
    tab.page.get_by_text("stepscope trace JOB").wait_for()
    assert [problem for problem in tab.problems if "404" not in problem] == []
    tab.problems.clear()
