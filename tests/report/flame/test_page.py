"""Flame graphs as page, picture and text: hostile names stay names, and what is not whole is always said."""

from __future__ import annotations

import base64
import gzip
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable
from html.parser import HTMLParser
from importlib import resources

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace
from tests.derive.stack_profiles import of_samples, of_text

from stepscope.derive.stacks.op_of_pool_thread import OP_TRACE
from stepscope.report.flame import page, payload, svg, text
from stepscope.report.flame.graph import ComparedProfiles, Graph, compare, graph, kind_shares, top_functions
from stepscope.report.flame.palette import _themes, style
from stepscope.tables.stacks import Frame, FrameKind

SCRIPT = resources.files("stepscope.report.flame").joinpath("flame.js").read_text(encoding="utf-8")
VOID = {"meta", "link", "br", "img", "input"}


class Checker(HTMLParser):
    """Elements in order, what is open at the end, and texts of scripts."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> at {self.getpos()}")


def read(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.wrong == []
    assert checker.open == []
    return checker


class Rows(msgspec.Struct):
    """Samples in the page's data."""

    stack: list[int]
    thread: list[int]
    weight: list[float]
    at: list[int] | None
    before: list[float] = []


class Data(msgspec.Struct):
    """The page's data, as the script reads it."""

    unit: str
    strings: list[str]
    frames: list[tuple[int, int, int, int, int, int]]
    parent: list[int]
    frame: list[int]
    threads: list[str]
    rows: Rows
    p: list[float] = []
    changed: list[int] = []


def data_of(html: str) -> Data:
    found = re.search(r'id="data">([A-Za-z0-9+/=]+)</script>', html)
    assert found is not None
    return msgspec.json.decode(gzip.decompress(base64.b64decode(found[1])), type=Data)


def pages(shown: Graph, pair: Callable[..., ComparedProfiles]) -> dict[str, str]:
    return {"one": page.render(shown), "two": page.render_compared(pair(differs=True))}


def test_pages_are_whole_and_load_nothing(shown: Graph, pair: Callable[..., ComparedProfiles]) -> None:
    """Balanced, ids once, no address, no handler, one script and one style sheet, both by hash."""
    for html in pages(shown, pair).values():
        checker = read(html)
        ids = [attrs["id"] for _, attrs in checker.tags if "id" in attrs]
        assert len(ids) == len(set(ids))
        assert [tag for tag, _ in checker.tags if tag in {"iframe", "object", "form", "base"}] == []
        assert [name for _, attrs in checker.tags for name in attrs if name.startswith("on") or name == "style"] == []
        links = [attrs.get("src") or attrs.get("href") for _, attrs in checker.tags if {"src", "href"} & attrs.keys()]
        assert all((link or "").startswith(("data:", "#")) for link in links)
        policy = next(attrs["content"] for tag, attrs in checker.tags if tag == "meta" and "http-equiv" in attrs)
        assert policy is not None
        assert policy.startswith("default-src 'none'; script-src 'sha256-")
        assert "unsafe" not in policy
        assert html.count("<script") == 2
        assert html.count("<style") == 1


def test_hostile_names_are_text(shown: Graph) -> None:
    """No name of a session becomes markup, a line or a control character; all of them are in the page still."""
    html = page.render(shown)
    assert "alert(" not in html.replace(SCRIPT, "").replace("alert(&#34;", "")
    assert "\x1b" not in html
    assert "\u202e" not in html
    strings = data_of(html).strings
    assert any("alert" in name for name in strings)
    assert not any("\x1b" in name or "\n" in name for name in strings)
    picture = svg.render(shown)
    assert "<script" not in picture
    assert "\x1b" not in text.render(shown)
    assert "\n\n\n" not in text.render(shown)


def test_what_is_not_whole_is_said_everywhere(shown: Graph) -> None:
    """A fifth has no name and is truncated: page, picture and text say so, and a frame stands for it."""
    for said in (page.render(shown), svg.render(shown), text.render(shown)):
        assert "20 % end in an unnamed frame" in said
        assert "20 % are truncated stacks" in said
        assert "3 samples were lost" in said
    assert "[truncated]" in data_of(page.render(shown)).strings
    assert ">[truncated]<" in svg.render(shown)


def test_that_all_is_whole_is_said_too() -> None:
    """Silence never means that nobody looked; a source that does not tell is no whole stack."""
    frames = [Frame("_start", kind=FrameKind.NATIVE), Frame("main", kind=FrameKind.NATIVE)]
    assert "all stacks are complete" in text.render(graph(of_samples([(0, frames)]), source="x"))
    assert "the source does not say whether stacks are complete" in text.render(graph(of_text({"a;b": 1}), source="x"))


def test_idle_is_said() -> None:
    """Who is left out is counted."""
    shown = graph(of_text({"swapper;idle": 3, "job;main": 1}), source="x")
    assert shown.profile.total == 1
    assert "idle tasks are omitted: 75 %" in text.render(shown)


def test_pictures_are_xml_with_every_box_named(shown: Graph, pair: Callable[..., ComparedProfiles]) -> None:
    """Well-formed; widths of a row add up to the picture; each box has a title."""
    for picture in (svg.render(shown), svg.render_compared(pair(differs=True))):
        root = ET.fromstring(picture)
        space = "{http://www.w3.org/2000/svg}"
        groups = root.findall(f"{space}g")
        assert all(group.findtext(f"{space}title") for group in groups)
        widths: dict[str, float] = {}
        for group in groups:
            rect = group.find(f"{space}rect")
            assert rect is not None
            widths[rect.attrib["y"]] = widths.get(rect.attrib["y"], 0) + float(rect.attrib["width"])
        assert max(widths.values()) <= svg.WIDTH
        assert widths[min(widths, key=float)] == pytest.approx(svg.WIDTH, abs=1)


def test_data_of_the_page(shown: Graph) -> None:
    """A tree, callers first, and a row for each sample with its time in microseconds."""
    data = data_of(page.render(shown))
    assert all(parent < i for i, parent in enumerate(data.parent))
    assert data.rows.at is not None
    assert len(data.rows.stack) == len(data.rows.at) == 100
    assert sum(data.rows.weight) == 1e9
    assert max(data.rows.at) == 9_900_000
    assert data.threads[0] == "MainThread 7"


def test_too_many_samples_are_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page stays small: moments become coarser, nothing is lost."""
    monkeypatch.setattr(payload, "MAX_ROWS", 50)
    monkeypatch.setattr(payload, "MAX_STACKS", 4)
    samples = [(i * 1_000_000, [Frame("m"), Frame(f"f{i % 8}")]) for i in range(1000)]
    shown = graph(of_samples(samples), source="x")
    data = data_of(page.render(shown))
    assert len(data.parent) <= 6
    assert sum(data.rows.weight) == 1000
    assert "merged into [too small to draw]" in page.render(shown)


def test_a_difference_is_said_and_drawn(pair: Callable[..., ComparedProfiles]) -> None:
    """The tower that is gone: named in the heading, the table and the data."""
    compared = pair(differs=True)
    html = page.render_compared(compared)
    assert "<h1>cpu: clear_page gone beyond sampling noise" in html
    data = data_of(html)
    gone = next(i for i, f in enumerate(data.frames) if data.strings[f[0]] == "clear_page")
    row = next(r for r, s in enumerate(data.rows.stack) if data.frame[s] == gone)
    assert data.rows.before[row] == 300
    assert data.rows.weight[row] == 0
    assert data.p[data.rows.stack[row]] < 0.05
    assert gone in data.changed
    said = text.render_compared(compared)
    assert "clear_page  self 300 \u2192 0 (gone)" in said


def test_no_difference_is_said(pair: Callable[..., ComparedProfiles]) -> None:
    """Nothing is claimed, and on what that rests is there."""
    compared = pair(differs=False)
    assert "<h1>No significant change in cpu</h1>" in page.render_compared(compared)
    said = text.render_compared(compared)
    assert said.startswith("No significant change in cpu\n")
    assert "0 of" in said
    assert "629 and 629 samples" in said


def test_ops_of_an_op_trace_are_no_difference_to_a_run_without() -> None:
    """Both runs do the same; where both have such ops, they count."""
    caller, code = Frame("work", kind=FrameKind.NATIVE), Frame("kernel", kind=FrameKind.GENERATED)
    op, another = (Frame(name, module=OP_TRACE, kind=FrameKind.FRAMEWORK) for name in ("a:MatMul", "b:MatMul"))
    plain, traced, other = (
        graph(of_samples([(i, [caller, *ops, code]) for i in range(200)]), source="x")
        for ops in ((), (op,), (another,))
    )
    for pair in ((plain, traced), (traced, plain), (traced, traced)):
        compared = compare(*pair, basis="work", work=(1.0, 1.0))
        assert not compared.difference.functions
        assert compared.before.profile.total == compared.after.profile.total == 200
    assert compare(traced, other, basis="work", work=(1.0, 1.0)).difference.functions


def test_shares_by_kind_and_function(shown: Graph) -> None:
    """By the innermost frame; lines of a function are one."""
    shares = kind_shares(shown.profile)
    assert shares[FrameKind.KERNEL] == 0.2
    assert sum(shares.values()) == pytest.approx(1)
    rows = {row.function.function: row for row in top_functions(shown.profile, 10)}
    run = rows["tensorflow::Executor::Run(long)"]
    assert (run.self_weight, run.total) == (4e8, 6e8)


def test_empty_profiles_draw() -> None:
    """No sample at all: every picture says so and none fails."""
    shown = graph(replace(of_text({"a": 1}), samples=of_text({"a": 1}).samples.take(np.zeros(1, np.bool_))), source="x")
    assert "0 samples" in text.render(shown)
    ET.fromstring(svg.render(shown))
    read(page.render(shown))


# ---- the script


def test_script_uses_nothing_that_makes_markup_or_code() -> None:
    """Text goes in as text only; nothing is loaded, stored or evaluated."""
    forbidden = (
        r"\binnerHTML\b|\bouterHTML\b|\binsertAdjacentHTML\b|\bdocument\.write\b|\beval\b|\bnew Function\b|\bimport\b|"
        r"\bfetch\b|XMLHttpRequest|WebSocket|localStorage|sessionStorage|\bcookie\b|https?://|\bsetTimeout\([\"']"
    )
    assert re.findall(forbidden, SCRIPT) == []
    assert '"use strict";' in SCRIPT
    assert "</" not in SCRIPT
    assert "<!--" not in SCRIPT
    assert all(len(line) <= 140 for line in SCRIPT.splitlines())


def test_script_parses() -> None:
    """As JavaScript, where there is a node to ask."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node on this machine; the browser's tests run the script")
    done = subprocess.run(
        [node, "--check", "-"], input=SCRIPT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def test_script_and_style_know_every_kind() -> None:
    """A kind of code has a number in the script, a colour in both themes and a class in the legend."""
    found = re.search(r"const KINDS = \[(.*?)\]", SCRIPT, re.DOTALL)
    assert found is not None
    kinds = re.findall(r'"(\w+)"', found[1])
    assert kinds == [FrameKind(i).name.lower() for i in range(len(FrameKind))]
    light, dark = _themes()
    assert set(kinds) <= set(light)
    assert light.keys() == dark.keys()
    sheet = style()
    assert [kind for kind in kinds if f".k-{kind} " not in sheet] == []


def test_names_can_be_read_on_their_boxes() -> None:
    """4.5 to 1 at least (WCAG 2.2, 1.4.3), in both themes."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        parts = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    for theme in _themes():
        for name, colour in theme.items():
            if name in {"ink", "hit-ink", "cursor", "heat"}:
                continue
            ink = theme["hit-ink" if name == "hit" else "ink"]
            high, low = sorted((luminance(colour), luminance(ink)), reverse=True)
            assert (high + 0.05) / (low + 0.05) >= 4.5, name
