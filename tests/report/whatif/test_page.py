"""The page of an experiment."""

import re

import msgspec
from tests.report.whatif_samples import REPORT, RESULT

from stepscope.model.report.whatif import WhatIfNoise, WhatIfPart, WhatIfPeer, WhatIfRun
from stepscope.report.whatif import page as whatif_page
from stepscope.report.whatif.page import Flames

SVG = '<svg xmlns="http://www.w3.org/2000/svg"><title>a &lt; b</title></svg>'


def test_what_the_page_says() -> None:
    """The answer, the trial with its interval and its bar, the noise, and the step are on the page."""
    parts = (WhatIfPart(component="input-wait", ratio=0.7, ns=7_000_000, trial="compute-only", saved_ratio=0.6),)
    noise = WhatIfNoise(ratio=1.002, low=0.99, high=1.01)
    page = whatif_page.render(msgspec.structs.replace(REPORT, parts=parts, noise=noise))
    for text in (
        "<h1>Best: jemalloc-keep makes a step 1.1 times as fast</h1>",
        "-9.0 % (-10.3 to -7.5)",
        'aria-label="91 % of the unchanged job&#39;s time"',
        "-1.0 to +1.0 %",
        '<td><code>compute-only</code></td><td class="n">60 %</td>',
    ):
        assert text in page
    assert "--apply glibc-keep is not in effect" in page


def test_flame_graphs_stand_side_by_side() -> None:
    """Both pictures are inside of the page; the difference is a file beside it."""
    flames = Flames(trial="jemalloc-keep", before=SVG, after=SVG, link="flame-diff.html")
    page = whatif_page.render(REPORT, flames)
    assert page.count('src="data:image/svg+xml;base64,') == 2
    assert '<a href="flame-diff.html">' in page
    assert "are not drawn: no stacks." in whatif_page.render(
        REPORT, Flames(trial="a", before="", after="", why="no stacks")
    )


def test_peers_and_trackers_are_on_the_page() -> None:
    """What the job wanted to reach, escaped, and what was set offline; without either no row."""
    peers = (WhatIfPeer(peer="<b>:443", attempts=2),)
    page = whatif_page.render(msgspec.structs.replace(REPORT, peers=peers, trackers=("W&B",), isolated=True))
    assert "&lt;b&gt;:443 (2 times)" in page
    assert "W&amp;B" in page
    assert "Wants to reach" not in whatif_page.render(REPORT)


def test_nothing_on_the_page_runs_or_loads() -> None:
    """Names of trials and notes are escaped; nothing is loaded from elsewhere."""
    evil = msgspec.structs.replace(RESULT, remedy="stub:<script>alert(1)</script>", note='"><img src=x>')
    page = whatif_page.render(msgspec.structs.replace(REPORT, results=(evil,)))
    assert "<script" not in page
    assert "<img" not in page
    assert not re.search(r"""<[^>]* (src|href)=.?(https?:|//)""", page)


def test_a_run_is_named_by_what_was_in_effect() -> None:
    """What is kept counts: a run that is only sampled has no trial of its own."""
    runs = [
        WhatIfRun(round=1, remedy="", ns=3, session="a"),
        WhatIfRun(round=0, remedy="", ns=2, session="b", kept=("glibc-malloc",)),
        WhatIfRun(round=1, remedy="batch:4", ns=1, session="c", kept=("glibc-malloc",)),
    ]
    page = whatif_page.render(msgspec.structs.replace(REPORT, runs=tuple(runs)))
    named = re.findall(r'<td class="n">[01]</td><td>(.*?)</td>', page)
    malloc = "<code>glibc-malloc</code>"
    assert named == ["unchanged", malloc, f"{malloc}, <code>batch:4</code>"]
