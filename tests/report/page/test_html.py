"""The report as one offline page."""

from __future__ import annotations

import math
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import msgspec
import pytest

from stepscope.report import html, words

if TYPE_CHECKING:
    from types import ModuleType

    from stepscope.model.report.report import Report

VOID = {"meta", "link", "br", "img", "input", "hr"}
SIZE_LIMIT = 400_000


class Checker(HTMLParser):
    """Reads a page and keeps what the tests ask for."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.errors: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        if len(names) != len(set(names)):
            self.errors.append(f"attribute twice in {tag}")
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.errors.append(f"</{tag}> at {self.getpos()}")

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.text.append(data)


def read(page: str) -> Checker:
    """Parse a page to its end."""
    checker = Checker()
    checker.feed(page)
    checker.close()
    return checker


@pytest.fixture
def sources(samples: ModuleType) -> dict[str, str]:
    """The source of the sample program, by absolute path."""
    return {"/home/ann/demo/train.py": samples.SOURCE}


@pytest.fixture
def page(report: Report, sources: dict[str, str]) -> str:
    """The page of each sample in turn."""
    return html.render(report, sources=sources)


def test_balanced(page: str) -> None:
    """Every element that is opened is closed, in order, and ids are there once."""
    checker = read(page)
    assert checker.errors == []
    assert checker.open == []
    ids = [attrs["id"] for _, attrs in checker.tags if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_small(page: str) -> None:
    """A page stays below 400 KB."""
    assert len(page.encode()) < SIZE_LIMIT


def test_largest_is_small(samples: ModuleType, sources: dict[str, str]) -> None:
    """With series as long as they may be, every component and twelve findings with source it stays below 400 KB."""
    base = samples.input_bound()
    wave = tuple(80 + 7.123456 * math.sin(i) for i in range(400))
    times = tuple(1.0 + i * 12.3456 for i in range(400))
    series = {f"anat:{name}": wave[:200] for name in words.COMPONENT_WORDS} | {"anat_t": times[:200]}
    series |= dict.fromkeys(("step_ms_p50", "step_ms_p95", "step_ms_max"), wave) | {"step_t": times}
    series |= {"outlier_t": times[-50:], "outlier_ms": wave[:50]}
    series |= {key: wave for key in base.series if key.startswith("res:")} | {"res_t": times}
    report = msgspec.structs.replace(base, series=base.series | series, findings=(samples.finding(),) * 12)
    assert len(html.render(report, sources=sources).encode()) < SIZE_LIMIT


def test_nothing_from_elsewhere(page: str) -> None:
    """The page loads nothing: no address but fragments, data icons and namespaces, no script at all."""
    checker = read(page)
    for tag, attrs in checker.tags:
        assert tag not in {"script", "iframe", "object", "embed", "img", "base", "form", "foreignobject"}
        assert "style" not in attrs
        assert not [name for name in attrs if name.startswith("on")]
        for name in ("href", "src", "xlink:href", "action"):
            address = attrs.get(name)
            assert address is None or address.startswith(("#", "data:image/svg+xml;base64,"))
    style = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert len(style) == 1
    assert "http" not in style[0]
    assert "@import" not in style[0]
    assert set(re.findall(r"url\(([^)]*)\)", style[0])) <= {"#hatch"}


def test_policy(page: str) -> None:
    """The content-security policy allows the one style sheet, by hash, and nothing else."""
    policies = [a["content"] for t, a in read(page).tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert len(policies) == 1
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-[\w+/=]+'; img-src data:; base-uri 'none'; form-action 'none'",
        policies[0] or "",
    )


def test_hostile_names_stay_text(samples: ModuleType, sources: dict[str, str]) -> None:
    """What a session's names hold is shown as text, whatever it is."""
    checker = read(html.render(samples.hostile(), sources=sources))
    shown = "".join(checker.text)
    assert samples.EVIL in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert {tag for tag, _ in checker.tags} <= {tag for tag, _ in read(html.render(samples.input_bound())).tags}


def test_hostile_source_stays_text(samples: ModuleType) -> None:
    """Source is shown as text, and its indentation is kept."""
    text = "def f():\n    x = '</code></pre><script>alert(1)</script>'\n\tif x: pass  # \x1b[0m"
    place = msgspec.structs.replace(samples.finding().where[0], line=2, end_line=3)
    report = msgspec.structs.replace(samples.input_bound(), findings=(samples.finding(where=(place,)),))
    checker = read(html.render(report, sources={"train.py": text}))
    assert "script" not in {tag for tag, _ in checker.tags}
    shown = "".join(checker.text)
    assert "\n2    x = '</code></pre><script>alert(1)</script>'\n" in shown
    assert "\n3    if x: pass  # \ufffd[0m\n" in shown


def test_marked_lines(samples: ModuleType, sources: dict[str, str]) -> None:
    """The lines of the place are marked, four more stand on either side."""
    page = html.render(samples.input_bound(), sources=sources)
    first = page[page.index("Source of train.py:24") :]
    first = first[: first.index("</pre>")]
    assert re.findall(r'line hit"><i>(\d+)</i>', first) == ["24", "25", "26", "27"]
    assert re.findall(r"<i>(\d+)</i>", first) == [str(n) for n in range(20, 32)]


def test_missing_series_say_why(samples: ModuleType) -> None:
    """A chart without its series is left out in one line that says why."""
    shown = "".join(read(html.render(samples.no_series())).text)
    for title in ("The step over time", "Step time over time", "Distribution of step times", "CPU"):
        assert f"{title} is not drawn: this session has no values for it." in shown
    assert not [key for key in ("anat_t", "step_ms_p50", "hist_ms_edges", "res:cpu_cores") if key in shown]


@pytest.mark.parametrize(
    "broken",
    [
        {"step_t": (0.0,), "anat_t": (0.0,), "res_t": (0.0,), "hist_ms_edges": (1.0,)},
        {"step_t": (0.0, 1.0), "anat_t": (0.0, 1.0), "res_t": (1.0, 2.0), "hist_ms_edges": (0.0, 1.0)},
        {"step_ms_p50": (float("nan"),) * 60, "res:cpu_cores": (float("inf"),) * 50, "anat:call": ()},
        {"anat_t": (), "hist_count": (), "res:rss_mb": (), "outlier_t": ()},
    ],
)
def test_broken_series_are_left_out(samples: ModuleType, broken: dict[str, tuple[float, ...]]) -> None:
    """Series that do not fit each other are no reason to fail."""
    base = samples.input_bound()
    page = html.render(msgspec.structs.replace(base, series=base.series | broken))
    assert read(page).errors == []
    assert "is not drawn: " in page


@pytest.mark.parametrize("value", [0.0, 1e-9, 1.0, 1e12])
def test_flat_series_are_drawn(samples: ModuleType, value: float) -> None:
    """Series that never change, zero included, make charts without a division by zero."""
    base = samples.input_bound()
    flat = {k: (value,) * len(v) for k, v in base.series.items() if not k.endswith("_t") and "hist" not in k}
    page = html.render(msgspec.structs.replace(base, series=base.series | flat))
    assert read(page).errors == []
    assert "nan" not in re.sub(r"<[^>]*>", "", page).lower()


def test_charts_have_names_and_descriptions(samples: ModuleType) -> None:
    """Each chart that says something is an image with a name and a description."""
    checker = read(html.render(samples.input_bound()))
    ids = {attrs["id"] for _, attrs in checker.tags if "id" in attrs}
    images = [attrs for tag, attrs in checker.tags if tag == "svg" and "role" in attrs]
    assert len(images) == 7
    for attrs in images:
        assert attrs["role"] == "img"
        assert attrs.get("aria-label") or {attrs["aria-labelledby"], attrs["aria-describedby"]} <= ids


def test_one_colour_for_one_component(samples: ModuleType) -> None:
    """A component has the same class in the bar, the table and the chart over time."""
    page = html.render(samples.input_bound())
    for component in ("input-wait", "call", "callbacks", "other-python"):
        assert len(re.findall(rf'class="c-{component}( part)?"', page)) >= 4


def test_verdicts(samples: ModuleType) -> None:
    """The head of the page says the first finding, that there is none, or that there were no steps."""
    heads = {n: re.findall(r"<h1>(.*?)</h1>", html.render(f()))[0] for n, f in samples.SAMPLES.items()}
    assert "the input generator runs in Python" in heads["input-bound"]
    assert heads["clean"] == "Nothing significant found"
    assert heads["no-steps"] == "No steps seen"


def test_same_report_same_page(samples: ModuleType) -> None:
    """A page is a function of the report: no time, no random names."""
    assert html.render(samples.input_bound()) == html.render(samples.input_bound())


def test_blind_detectors_are_not_called_inapplicable(samples: ModuleType) -> None:
    """A detector whose signal is missing could not look; one without a case in this job was not applicable."""
    page = html.render(samples.no_series())
    rows = re.findall(r'<th scope="row">(\w+)</th>.*?<span class="outcome [\w-]+">(.*?)</span>', page)
    outcomes = dict(rows)
    assert outcomes["SYS001"] == "missing data"
    assert outcomes["HST008"] == "not applicable"
    assert outcomes["INP003"] == "undecided"
    assert "Why it could not decide" in page
    assert "Why it could not decide" not in html.render(samples.clean())


def test_lines_show_what_they_cost(samples: ModuleType) -> None:
    """The excerpt has the share of each line that is known to cost something, and no column where none is."""
    page = html.render(samples.from_source(), sources={"/home/ann/demo/train.py": samples.SOURCE})
    assert "<i>26</i><b>58 %</b>" in page
    assert "<i>25</i><b></b>" in page
    assert "<i>37</i><b>4.7 %</b>" in page
    assert "</i><b>" not in html.render(samples.input_bound(), sources={"/home/ann/demo/train.py": samples.SOURCE})


def test_what_the_source_adds(samples: ModuleType) -> None:
    """A joined finding names the rule, its edit and the command; what only the source shows is a table of its own."""
    page = html.render(samples.from_source())
    assert "also in the source: TFD001" in page
    assert "Edit: <code>stepscope check --diff --unsafe-fixes --select TFD001 train.py</code>" in page
    assert '<h2 id="source-h">In the source</h2>' in page
    assert "seen, no measured cost" in page
    assert "model.predict | is called for a &lt;single&gt; row" in page
    assert 'id="source-h"' not in html.render(samples.input_bound())
