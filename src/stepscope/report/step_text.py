"""One step compared with the median step, for the terminal and as Markdown. Text from the session is untrusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from stepscope.report import words
from stepscope.report.marked import Md, table
from stepscope.tables.units import format_ns, format_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.model.report.slow_steps import StepPart
    from stepscope.model.report.step_detail import StepDetail, StepHappening, StepReading
    from stepscope.tables.place import Place

COLUMN = 12
SMALL_RATIO = 0.005
"""A component below this share of the step and of the median step is left out."""
HARDLY_FROM = 1_000.0
"""Times the median from which the median step has next to nothing of a component."""
MOST_RATIO = 0.5
"""Share of the steps that is most of them."""
READINGS = {
    "cpu": "CPU of the job",
    "others_cpu": "CPU of others",
    "wait_for_cpu": "waiting for a CPU",
    "throttled": "throttled by the cgroup",
    "steal": "taken by the hypervisor",
    "waiting_for_disk": "CPUs idle for a disk",
    "page_faults": "page faults",
    "major_faults": "major page faults",
    "read": "read",
    "written": "written",
    "disk_busy": "disk busy",
    "swapped_out": "swapped out",
}
"""Names of the readings of the machine."""
ALWAYS = ("others_cpu", "wait_for_cpu", "page_faults", "disk_busy", "swapped_out")
"""Readings that are shown though they are as usual."""


def to_json(steps: Sequence[StepDetail]) -> bytes:
    """One step as an object, several as a list of them."""
    data = msgspec.json.encode(steps[0] if len(steps) == 1 else steps)
    return msgspec.json.format(data, indent=2) + b"\n"


def text(steps: Sequence[StepDetail]) -> str:
    """For the terminal: a paragraph for each step."""
    return "\n".join("".join(f"{line}\n" for line in _lines(step)) for step in steps)


def markdown(steps: Sequence[StepDetail]) -> Md:
    """A section for each step."""
    return Md("\n").join(_section(step) for step in steps)


def rows(step: StepDetail) -> list[tuple[str, list[str]]]:
    """The parts of the answer below its first sentence: a label and the lines of each."""
    found = [
        ("step", [about(step)]),
        ("happened", [happening_line(one) for one in step.happened]),
        ("stacks", _stacks(step)),
        ("ops", _ops(step)),
        ("machine", _machine(step)),
        ("note", [words.printable(note) for note in step.notes]),
    ]
    return [(label, lines) for label, lines in found if lines]


def about(step: StepDetail) -> str:
    """What the step is, and how it stands among the others."""
    rank = f"the slowest of {step.steps:,} steps" if step.rank == 1 else f"number {step.rank:,} by duration"
    parts = [
        words.printable(step.title),
        rank if step.rank else "",
        {"warm-up": "in the warm-up", "pause": "not a steady step", "last": "its end was not seen"}.get(
            step.standing, ""
        ),
        f"began {format_ns(step.start_ns)} after the start",
    ]
    return words.SEPARATOR.join(filter(None, parts))


def _lines(step: StepDetail) -> list[str]:
    lines = [words.printable(step.headline), ""]
    if step.asked:
        lines.insert(0, words.printable(step.notes[0]))
        step = msgspec.structs.replace(step, notes=step.notes[1:])
    table = [("", "this step", "median", ""), *(part_cells(part) for part in shown_parts(step))]
    lines += [f"{name:<20}{mine:>10}{usual:>10}  {factor}".rstrip() for name, mine, usual, factor in table]
    lines.append("")
    for label, said in rows(step):
        lines += [f"{label if not at else '':<{COLUMN}}{line}" for at, line in enumerate(said)]
    return lines


def shown_parts(step: StepDetail) -> list[StepPart]:
    """The components that are worth a line, largest extra time first."""
    least = SMALL_RATIO * step.dur_ns, SMALL_RATIO * step.median_ns
    return [part for part in step.parts if part.ns >= least[0] or part.median_ns >= least[1]]


def part_cells(part: StepPart) -> tuple[str, str, str, str]:
    """Name, time in the step, time in the median step, and how many times that is."""
    factor = "only in this step" if part.factor is None else f"x {part.factor:,.1f}"
    if part.factor is not None and part.factor >= HARDLY_FROM:
        factor = "hardly in others"
    return words.component_word(part.component), format_ns(part.ns), format_ns(part.median_ns), factor


def happening_line(one: StepHappening) -> str:
    """``callback ModelCheckpoint.on_epoch_end 350 ms (train.py:88), in 2.5 % of the other steps``."""
    name = f" {words.printable(one.name)}" if one.name else ""
    calls = f", {one.calls:,} times" if one.calls > 1 else ""
    place = f" ({place_text(one.where)})" if one.where is not None else ""
    reason = f": {words.printable(one.reason)}" if one.reason else ""
    return f"{one.what}{name} {format_ns(one.ns)}{calls}{place}{reason}; {_usual(one)}"


def place_text(place: Place) -> str:
    """The place without the folder that packages are installed in."""
    installed = place.file.rpartition("/site-packages/")[2]
    return words.place_text(msgspec.structs.replace(place, file=installed), short=True)


def _usual(one: StepHappening) -> str:
    if not one.usual_ns and not one.usual_steps_ratio:
        return "in no other step"
    where = "most steps" if one.usual_steps_ratio >= MOST_RATIO else f"{format_ratio(one.usual_steps_ratio)} of steps"
    return f"in {where}, usually {format_ns(one.usual_ns)}"


def _stacks(step: StepDetail) -> list[str]:
    if not step.samples:
        return ["no stack sample fell into it: stacks are sampled 20 times a second"]
    cpu = f", {format_ratio(step.cpu_ratio)} of it on a CPU" if step.cpu_ratio is not None else ""
    lines = [f"{words.plural(step.samples, 'sample')} fell into it{cpu}"]
    for line in step.lines:
        inside = f", in {words.printable(line.called)}" if line.called else ""
        lines.append(
            f"{format_ns(line.ns):>8}  {place_text(line.where)}{inside} ({words.component_word(line.component)})"
        )
    return lines


def _ops(step: StepDetail) -> list[str]:
    if not step.op_trace:
        return []
    if not step.ops:
        return [f"the step lies in op trace {words.printable(step.op_trace)}, with no other step to compare with"]
    return [f"longer than in the other steps of op trace {words.printable(step.op_trace)}:"] + [
        f"{format_ns(op.ns):>8}  {words.printable(op.name)} ({words.printable(op.type)}), usually "
        f"{format_ns(op.usual_ns)}"
        for op in step.ops
    ]


def _machine(step: StepDetail) -> list[str]:
    if not step.machine:
        return ["not sampled around this step"]
    shown = [one for one in step.machine if one.raised or one.name in ALWAYS]
    lines = [words.SEPARATOR.join(reading_text(one) for one in shown)]
    if step.rival:
        lines.append(f"most by another process: {words.printable(step.rival)}")
    every = step.machine_every_ns
    if every > step.dur_ns:
        lines.append(
            f"sampled every {format_ns(every)}, the step took {format_ns(step.dur_ns)}: too coarse to say what "
            "happened in it, only around it"
        )
    return lines


def reading_text(one: StepReading) -> str:
    """``CPU of others 1.8 cores (usually 0.2)``, with a mark where it is raised."""
    value = words.value_text(one.value, one.unit) if one.unit != "disks" else format_ratio(one.value)
    usual = words.value_text(one.usual, "") if one.unit != "disks" else format_ratio(one.usual)
    unit = f" {one.unit}" if one.unit != "disks" and not value.endswith(one.unit) else ""
    mark = "! " if one.raised else ""
    return f"{mark}{READINGS.get(one.name, words.printable(one.name))} {value}{unit} (usually {usual.strip()})"


def _section(step: StepDetail) -> Md:
    parts = table(("component", " this step", " median step", ""), map(part_cells, shown_parts(step)))
    said = Md("\n").join(_said(label, lines) for label, lines in rows(step))
    return Md("### {}\n\n{}\n\n{}\n").format(step.headline, parts, said)


def _said(label: str, lines: Sequence[str]) -> Md:
    more = (Md("  - {}").format(line.strip()) for line in lines[1:])
    return Md("\n").join((Md("- **{}**: {}").format(label, lines[0]), *more))
