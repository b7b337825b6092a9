"""What is said of the memory of a job without a trial and with it."""

from __future__ import annotations

import msgspec

from stepscope.model.report.whatif import WhatIfMemory, WhatIfResult
from stepscope.report.whatif.text import memory_lines
from stepscope.use_cases.whatif import memory_sides

BEFORE = WhatIfMemory(
    anonymous_bytes=1_000_000_000, huge_bytes=0, hole_bytes=0, layout="packed", faults_per_step=822.0, miss_ns=110.0
)
AFTER = msgspec.structs.replace(BEFORE, huge_bytes=810_000_000, faults_per_step=3.0, miss_ns=40.0)


def _lines(before: WhatIfMemory | None, after: WhatIfMemory | None, peaks: tuple[int, int] = (0, 0)) -> list[str]:
    one = WhatIfResult(remedy="thp-always", text="", ns=1, ratio=1.0, low=0.0, high=0.0, verdict="same")
    sides = {"memory_before": before, "memory_after": after}
    return memory_lines(msgspec.structs.replace(one, **sides, peak_before_bytes=peaks[0], peak_after_bytes=peaks[1]))


def test_both_sides_stand_in_one_line() -> None:
    """Pages and faults; the layout where it differs; the bound of TLB misses as far as there is one."""
    pages, misses = _lines(BEFORE, AFTER)
    assert "0 % to 81 %" in pages
    assert "page faults a step 822 to 3" in pages
    assert "not bounded" in misses
    assert "110 ns to 40" in misses
    padded = msgspec.structs.replace(AFTER, layout="padded", hole_bytes=8 << 20, miss_ns=None)
    _, layout = _lines(BEFORE, padded)
    assert layout.startswith("layout: packed to padded")
    before, after = (msgspec.structs.replace(one, translation_ratio=0.04) for one in (BEFORE, AFTER))
    assert "4.0 % to 4.0 %" in _lines(before, after)[-1]
    assert _lines(None, AFTER) == []


def test_the_peak_is_told_of_every_trial() -> None:
    """Of those that change no memory as well, where both sides are known."""
    assert _lines(None, None, (800_000_000, 1_200_000_000)) == ["peak memory: 763 MiB to 1.12 GiB"]
    assert _lines(None, None, (800_000_000, 0)) == []
    assert len(_lines(BEFORE, AFTER, (1, 1))) == 3


def test_runs_have_their_medians() -> None:
    """What is unknown in one run counts in none."""
    unknown = msgspec.structs.replace(BEFORE, faults_per_step=None)
    found = memory_sides.typical([AFTER, unknown, BEFORE])
    assert found is not None
    assert (found.huge_bytes, found.faults_per_step) == (0, 412.5)
    assert memory_sides.typical([]) is None
