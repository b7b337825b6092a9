"""What an experiment brought, for people: a line for the unchanged job and one for each trial, gains first."""

from __future__ import annotations

import shlex
import textwrap
from typing import TYPE_CHECKING

from stepscope.model.report.remedies import ENVIRONMENT_REMEDIES
from stepscope.report import words
from stepscope.report.whatif import curve_text as whatif_curve_text
from stepscope.report.whatif import slopes_text as whatif_slopes_text
from stepscope.report.whatif import values_text as whatif_values_text
from stepscope.report.words import printable
from stepscope.tables.units import format_bytes, format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stepscope.model.report.whatif import Choice, WhatIfMemory, WhatIfNoise, WhatIfPart, WhatIfReport, WhatIfResult

AS_IT_IS = "unchanged"
_TITLES = (
    ("gain", "Gains: what a change that lasts would bring"),
    ("ceiling", "Ceilings: the most"),
    ("look", "Looks: what needs no time to be seen"),
)
_COLORS = {"faster": "1;32", "slower": "1;31"}
VERDICTS = {"same": "no difference", "not-possible": "not possible", "not-tried": "not tried"}
"""Verdicts in words, where the word is another."""
KEEP = "to keep it, a line for the shell or script that starts the job:"
MIN_WIDTH = 60
MAX_NAME = 24
"""Width of the column of names; a longer name stands on a separate line."""
_MOST_PEERS = 6
"""Peers that are named."""
MEASURED = frozenset({"faster", "slower", "same", "undecided"})
"""Verdicts of trials that were measured."""
STACKS = "stacks"
"""Stage of the two runs whose native stacks are sampled and whose time does not count."""
PAGE = "whatif.html"
"""Name of the page in the experiment's folder."""
BAR = 30
"""Letters of the bar that is a whole step."""
SHOWN_RATIO = 0.01
"""Least share of a component that is listed."""
MOST_PROMISING = 2
"""Trials that are named where nothing is decided."""
WORTH = 0.97
"""Ratio below which a gain is worth a change: the least severity of a finding."""


def render(report: WhatIfReport, *, color: bool = False, width: int = 120) -> str:
    """The report; each line ends in a newline. ``width``: columns of the terminal."""
    width = max(width, MIN_WIDTH)
    values = whatif_values_text.section(report, width)
    if not report.rounds:
        return "".join(f"{line}\n" for line in [head_line(report), *values, "", *foot_lines(report, width)])
    name_width = name_width_of(result.remedy for result in report.results)
    lines = [head_line(report), "", AS_IT_IS.ljust(name_width) + format_ns(report.ns) + noise_text(report.noise)]
    lines += table_lines(report.results, name_width, width, color=color)
    lines += not_measured_lines(report.results, name_width, width)
    lines += [*values, *whatif_slopes_text.section(report, width), *_parts(report, width)]
    lines += [line for curve in report.curves for line in whatif_curve_text.lines(curve, report.measure, width)]
    answer = textwrap.wrap(conclusion(report), width) if report.results else []
    return "".join(f"{line}\n" for line in [*lines, "", *answer, *foot_lines(report, width)])


def name_width_of(names: Iterable[str]) -> int:
    """Width of the column of names."""
    return min(max(map(len, (AS_IT_IS, *names))), MAX_NAME) + 2


def table_lines(results: Iterable[WhatIfResult], name_width: int, width: int, *, color: bool = False) -> list[str]:
    """What was measured: gains, then ceilings, each with its title."""
    lines: list[str] = []
    measured = [result for result in results if result.verdict in MEASURED]
    for kind, title in (("gain", "gains:"), ("ceiling", "ceilings: the most that any change of this part can bring")):
        found = [result for result in measured if result.kind == kind]
        lines += ["", title] if found else []
        for result in found:
            lines += result_lines(result, name_width, width, color=color)
    return lines


def catalogue(choices: Iterable[Choice], *, width: int = 120) -> str:
    """All that can be tried: gains, then ceilings, then what only looks."""
    lines: list[str] = []
    listed = list(choices)
    for kind, title in _TITLES:
        chosen = [choice for choice in listed if choice.kind == kind]
        lines += ([""] if lines else []) + [title] if chosen else []
        for choice in chosen:
            lines.append(f"  {choice.name}")
            limits = f" Limits: {choice.limits}" if choice.limits else ""
            lines += textwrap.wrap(
                choice.text + limits, max(width, MIN_WIDTH), initial_indent="      ", subsequent_indent="      "
            )
    return "".join(f"{line}\n" for line in lines)


def head_line(report: WhatIfReport) -> str:
    """The command, the rounds, and what is measured."""
    what = f"a {report.measure}" + (f" ({report.step})" if report.step and report.measure != "run" else "")
    parts = [printable(shlex.join(report.command))]
    rounds = f"{report.rounds} interleaved round{'s' if report.rounds != 1 else ''}"
    parts += [rounds, f"time of {what}"] if report.rounds else []
    return " \u00b7 ".join(parts)


def noise_text(noise: WhatIfNoise | None) -> str:
    """The unchanged job against itself, after its time."""
    if noise is None:
        return ""
    low, high = (100 * (ratio - 1) for ratio in (noise.low, noise.high))
    return f"    (against itself {100 * (noise.ratio - 1):+.1f} %, {low:+.1f} to {high:+.1f})"


def result_lines(result: WhatIfResult, name_width: int, width: int, *, color: bool = False) -> list[str]:
    """A trial with its change, what it does, and how to keep it."""
    word = VERDICTS.get(result.verdict, result.verdict)
    verdict = f"\x1b[{_COLORS[result.verdict]}m{word}\x1b[0m" if color and result.verdict in _COLORS else word
    line = f"{times_column(result)}{change_text(result)}  {verdict}"
    lasting = (result.verdict == "faster" or saves_cpu(result)) and bool(result.lasting)
    pasted = result.remedy in ENVIRONMENT_REMEDIES
    more = [
        f"gone: {', '.join(result.gone)}" if result.gone else "",
        f"new: {', '.join(result.new)}" if result.new else "",
        printable(result.note),
        how_text(result),
        printable(result.text) + ("" if result.keeps_results else " (changes the results)"),
        *memory_lines(result),
        f"why: {printable(result.reason)}" if result.expected_ratio else "",
        f"to keep it: {printable(result.lasting)}" if lasting and result.kind == "gain" and not pasted else "",
        f"look at: {printable(result.lasting)}" if lasting and result.kind == "ceiling" else "",
    ]
    lines = [*named_lines(result.remedy, line, name_width), *indented_lines(more, name_width, width)]
    keep = [KEEP, printable(result.lasting)] if lasting and pasted else []  # a line to paste is not wrapped
    return [*lines, *(" " * name_width + part for part in keep)]


def saves_cpu(result: WhatIfResult) -> bool:
    """Whether a gain is sure in the CPU time of a step, and nothing is known of its time on the wall."""
    undecided = result.kind == "gain" and result.verdict == "undecided"
    return undecided and 0 < result.cpu_high < 1 and result.cpu_ratio < WORTH


def memory_lines(result: WhatIfResult) -> list[str]:
    """Peak memory without a trial and with it; of one of memory also pages, faults, layout and TLB misses."""
    peaks = (result.peak_before_bytes, result.peak_after_bytes)
    peak = [f"peak memory: {' to '.join(map(format_bytes, peaks))}"] if all(peaks) else []
    before, after = result.memory_before, result.memory_after
    ends = tuple(100 * (one - 1) for one in (result.cpu_ratio, result.cpu_low, result.cpu_high))
    cpu = ["CPU time of a step: {:+.1f} % ({:+.1f} to {:+.1f})".format(*ends)] if result.cpu_ratio else []
    return [*cpu, *peak, *(_side_lines(before, after) if before is not None and after is not None else [])]


def _side_lines(before: WhatIfMemory, after: WhatIfMemory) -> list[str]:
    sides = (before, after)
    huge = " to ".join(format_ratio(one.huge_bytes / max(1, one.anonymous_bytes)) for one in sides)
    lines = [f"memory: in huge pages {huge} of {format_bytes(after.anonymous_bytes)}"]
    if before.faults_per_step is not None and after.faults_per_step is not None:
        lines[0] += f"; page faults a step {before.faults_per_step:,.0f} to {after.faults_per_step:,.0f}"
    if before.layout != after.layout or before.hole_bytes != after.hole_bytes:
        holes = " to ".join(format_bytes(one.hole_bytes) for one in sides)
        lines.append(f"layout: {before.layout} to {after.layout}, holes {holes}")
    if before.miss_ns is not None and after.miss_ns is not None:
        ratios = [one.translation_ratio for one in sides]
        bound = (
            " to ".join(format_ratio(ratio) for ratio in ratios if ratio is not None)
            if None not in ratios
            else "not bounded without an op trace or hardware counters"
        )
        cost = " to ".join(format_ns(one.miss_ns or 0.0) for one in sides)
        lines.append(f"TLB misses take at most: {bound} (one costs at most {cost})")
    return lines


def named_lines(name: str, text: str, name_width: int) -> list[str]:
    """A line that begins with a name, or two if the name is long."""
    if len(name) + 2 > name_width:
        return [printable(name), " " * name_width + text]
    return [printable(name).ljust(name_width) + text]


def indented_lines(texts: Iterable[str], name_width: int, width: int) -> Iterator[str]:
    """Texts below a name, wrapped."""
    for text in texts:
        for part in textwrap.wrap(text, width - name_width) if text else ():
            yield " " * name_width + part


def times_text(result: WhatIfResult) -> str:
    """Time without it and with it, in the same pairs: "25.9 ms to 8.61 ms"; of an older result that with it."""
    return f"{format_ns(result.before_ns)} to {format_ns(result.ns)}" if result.before_ns else format_ns(result.ns)


def times_column(result: WhatIfResult) -> str:
    """The same, as wide in each line."""
    return times_text(result).ljust(20 if result.before_ns else 10)


def change_text(result: WhatIfResult) -> str:
    """The change in time, in percent, with its interval."""
    value = f"{100 * (result.ratio - 1):+.1f} %"
    if not result.high:
        return f"{value} (seen {result.rounds} times: no interval)" if result.rounds != 1 else f"{value} (seen once)"
    return f"{value} ({100 * (result.low - 1):+.1f} to {100 * (result.high - 1):+.1f})"


def how_text(result: WhatIfResult) -> str:
    """Whether the trial was switched on and off in one process; "" if it cannot be."""
    if result.whole_why:
        return f"compared in whole runs; within one run it could not be: {printable(result.whole_why)}"
    if not result.pairs:
        return ""
    processes = "one process" if result.rounds == 1 else f"each of {result.rounds} processes"
    said = f"switched on and off in {processes}: {result.pairs} pairs of blocks"
    if result.noise is None:
        return said
    ratio, low, high = (100 * (one - 1) for one in (result.noise.ratio, result.noise.low, result.noise.high))
    return f"{said}; off against off {ratio:+.1f} %, {low:+.1f} to {high:+.1f}"


def saved_text(part: WhatIfPart) -> str:
    """What the trial that leaves a component out has saved; "" if there is none."""
    if not part.trial:
        return ""
    interval = f" ({100 * part.low:.0f} to {100 * part.high:.0f})" if part.high else ""
    return f"{100 * part.saved_ratio:.0f} %{interval}"


def _parts(report: WhatIfReport, width: int) -> Iterator[str]:
    """The step as a waterfall."""
    shown = [part for part in report.parts if part.ratio >= SHOWN_RATIO]
    if not shown:
        return
    head = "the step of the unchanged job, part by part, and what leaving a part out has saved"
    yield from ("", *textwrap.wrap(head, width))
    names = [words.component_word(part.component) for part in shown]
    wide = max(map(len, names))
    whole = sum(part.ratio for part in report.parts)
    at = 0.0
    for name, part in zip(names, shown, strict=True):
        start, end = (round(BAR * share / whole) for share in (at, at + part.ratio))
        bar = (" " * start + "\u2588" * max(1, end - start)).ljust(BAR)
        line = f"{name.ljust(wide)} {words.percent(part.ratio).rjust(4)} %  {bar}"
        saved = f"{part.trial} saves {saved_text(part)}" if part.trial else ""
        if len(line) + 2 + len(saved) <= width:
            yield f"{line}  {saved}".rstrip()
        else:
            yield line.rstrip()
            yield " " * (wide + 1) + saved
        at += part.ratio


def not_measured_lines(results: Iterable[WhatIfResult], name_width: int, width: int) -> Iterator[str]:
    """What was not possible or not tried, and why."""
    left = [result for result in results if result.verdict not in MEASURED]
    if left:
        yield ""
    for result in left:
        head, *rest = textwrap.wrap(f"{VERDICTS[result.verdict]}: {printable(result.note)}", width - name_width)
        yield from named_lines(result.remedy, head, name_width)
        yield from (" " * name_width + part for part in rest)


def conclusion(report: WhatIfReport) -> str:
    """The answer in one sentence."""
    best = next((r for r in report.results if r.kind == "gain" and r.verdict == "faster" and r.ratio < WORTH), None)
    ceilings = [r for r in report.results if r.kind == "ceiling" and r.verdict in {"faster", "same"}]
    told = ", ".join(f"{r.remedy} {100 * (r.ratio - 1):+.0f} %" for r in ceilings)
    saving = [
        f"{r.remedy} saves {100 * (1 - r.ratio):.0f} %" for r in ceilings if r.verdict == "faster" and r.ratio < WORTH
    ]
    if best is not None:
        other = "" if best.keeps_results else ", but changes the results"
        text = f"best: {best.remedy} makes a {report.measure} {1 / best.ratio:.2g} times as fast{other}"
    elif saving:
        tried = any(r.kind == "gain" and r.verdict in MEASURED for r in report.results)
        text = "no gain that lasts is sure; " if tried else ""
        text += f"the time is in the work that is left out here: {', '.join(saving)}"
    elif all(r.verdict == "not-possible" for r in report.results):
        text = "nothing that was tried is possible with this job"
    elif all(r.verdict in {"undecided", "not-tried", "not-possible"} for r in report.results):
        text = f"nothing is decided: more rounds or a quieter machine are needed (--rounds, --time){_promising(report)}"
        text += _in_cpu_time(report)
    else:
        left = any(r.verdict in {"undecided", "not-tried"} for r in report.results)
        known = " among what is decided" if left else ""
        text = f"nothing worth changing{known}" + (f"; the ceilings are: {told}" if told else "")
    return text


def _promising(report: WhatIfReport) -> str:
    """Trials that may be worth a change, although nothing is sure."""
    seen = sorted((one for one in report.results if one.verdict == "undecided"), key=lambda one: one.ratio)
    told = [f"{one.remedy} {100 * (one.ratio - 1):+.0f} %" for one in seen[:MOST_PROMISING] if one.ratio < WORTH]
    return f"; so far: {', '.join(told)}" if told else ""


def _in_cpu_time(report: WhatIfReport) -> str:
    """The gain that is sure in CPU time; "" if there is none."""
    found = min(filter(saves_cpu, report.results), key=lambda one: one.cpu_ratio, default=None)
    if found is None:
        return ""
    return f"; sure in CPU time, whatever else the machine does: {found.remedy} {100 * (found.cpu_ratio - 1):+.0f} %"


def peers_text(peers: Iterable[tuple[str, int]]) -> str:
    """(peer, attempts) in words, at most ``_MOST_PEERS`` of them; "" if there are none."""
    told = [
        f"{printable(name) or 'something outside, by code that is not Python'} "
        f"({attempts} time{'s' if attempts != 1 else ''})"
        for name, attempts in peers
    ]
    more = [f"and {len(told) - _MOST_PEERS} more"] if len(told) > _MOST_PEERS else []
    return ", ".join([*told[:_MOST_PEERS], *more])


def _peers(report: WhatIfReport) -> str:
    """What the job wanted to reach; "" if nothing."""
    reached = peers_text((one.peer, one.attempts) for one in report.peers)
    if not reached:
        return ""
    if report.network:
        return f"the job wants to reach: {reached}"
    return f"the job wanted to reach: {reached}; without network this may change its time: --allow-network"


def foot_lines(report: WhatIfReport, width: int) -> list[str]:
    """Where the sessions are, what was left behind, what the job wanted to reach, and how to resume."""
    kept = "what the job wrote was thrown away" if report.isolated else "the job wrote where it writes"
    network = "" if report.network else ", and it had no network"
    offline = f"set offline: {', '.join(report.trackers)}" if report.trackers else ""
    more = [line for text in (offline, _peers(report)) for line in textwrap.wrap(text, width)]
    joined = [f"in the report of the unchanged job: {printable(f'{report.folder}/{report.joined}')}/report.html"]
    found = joined if report.joined else []
    lines = [f"page: {printable(report.folder)}/{PAGE}", *found, f"{kept}{network}", *more]
    return [*lines, f"ended early; to resume: {printable(report.resume)}"] if report.interrupted else lines
