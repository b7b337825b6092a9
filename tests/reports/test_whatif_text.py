"""What remedies brought, as people read it."""

import msgspec

from stepscope.model.report.whatif import WhatIfReport, WhatIfResult
from stepscope.reports import whatif_text

RESULT = WhatIfResult(
    remedy="jemalloc-keep",
    text="let jemalloc keep what is freed",
    ns=11_300_000,
    ratio=0.91,
    low=0.897,
    high=0.925,
    verdict="faster",
    gone=("MEM002",),
)
SLOWER = WhatIfResult(
    remedy="glibc-keep",
    text="let malloc keep what is freed",
    ns=12_500_000,
    ratio=1.01,
    low=0.95,
    high=1.07,
    verdict="undecided",
    note="--apply glibc-keep is not in effect",
)
REPORT = WhatIfReport(
    version="0.1.0",
    command=("python", "my score.py"),
    measure="step",
    step="tf.function score",
    rounds=5,
    ns=12_400_000,
    results=(RESULT, SLOWER),
    runs=(),
    folder="score-1122-1530.whatif",
)


def test_a_line_for_each() -> None:
    assert whatif_text.render(REPORT).splitlines() == [
        "python 'my score.py' · 5 interleaved rounds · time of a step (tf.function score)",
        "",
        "unchanged      12.4 ms",
        "jemalloc-keep  11.3 ms   -9.0 % (-10.3 to -7.5)  faster",
        "               gone: MEM002",
        "               let jemalloc keep what is freed",
        "glibc-keep     12.5 ms   +1.0 % (-5.0 to +7.0)  undecided",
        "               --apply glibc-keep is not in effect",
        "               let malloc keep what is freed",
        "",
        "sessions: score-1122-1530.whatif",
    ]


def test_colors() -> None:
    assert "\x1b[1;32mfaster\x1b[0m" in whatif_text.render(REPORT, color=True)


def test_narrow_terminals() -> None:
    long = msgspec.structs.replace(RESULT, text="let jemalloc keep what is freed, " * 4)
    text = whatif_text.render(msgspec.structs.replace(REPORT, results=(long,)), width=20)
    assert text.count("let jemalloc") == 4
    assert max(len(line) for line in text.splitlines()[1:]) <= 60
