"""The tasks of the job, or its processes, if there are several: how fast they are, and for whom they wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report import words
from stepscope.report.blocks import Listed, Paragraph
from stepscope.report.section import Asked, Blocks, Lines, Said, Section, Where
from stepscope.tables.units import format_ns, format_rate, format_ratio

if TYPE_CHECKING:
    from stepscope.model.report.cluster import Cluster, JointCapture, JointTask, MemberRow

MOST_ROWS = 8
"""Most members that are shown, the slowest first; further ones are counted."""
MOST_NAMES = 8
LEAST_GAIN = 0.03
"""Lower bound of a gain from which it is shown: below it is noise."""


def head(cluster: Cluster) -> list[str]:
    """Items of the line about all members."""
    items = [f"{len(cluster.members)} of {words.plural(cluster.tasks, 'task')} ({words.printable(cluster.launcher)})"]
    if cluster.global_batch is not None:
        items.append(f"global batch {cluster.global_batch:g}")
    if cluster.samples_per_s is not None:
        items.append(f"{format_rate(cluster.samples_per_s)} samples/s of all")
    if cluster.period_ns is not None:
        items.append(f"step {format_ns(cluster.period_ns)}")
        items.append(f"mean wait for the slowest {format_ns(cluster.waits_ns or 0)}")
        items.append(f"exchange {format_ns(cluster.exchange_ns or 0)}")
    if cluster.missing:
        names = [words.printable(name) for name in cluster.missing]
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        items.append(f"missing: {', '.join(names[:MOST_NAMES])}{more}")
    return [*items, *filter(None, [words.printable(cluster.text)])]


def rows(cluster: Cluster) -> list[str]:
    """A line for each member, the one with the largest blame first where there are more than fit."""
    shown = list(cluster.members)
    if len(shown) > MOST_ROWS:
        shown = sorted(shown, key=lambda row: -(row.blame_ns or 0))[:MOST_ROWS]
    lines = [_line(row) for row in shown]
    left = len(cluster.members) - len(shown)
    lines += [f"and {left:,} more, in report.json"] if left else []
    return [*lines, *(line for capture in cluster.captures for line in joint(capture))]


def joint(capture: JointCapture) -> list[str]:
    """Lines of a joint capture: its steps, the communication of each task, and who missed."""
    there = [task for task in capture.tasks if not task.apart]
    names = ", ".join(words.printable(task.name) for task in (there if capture.steps else capture.tasks))
    if capture.steps:
        last = (capture.first_step or 0) + capture.steps - 1
        numbers = f", {capture.first_step:,} to {last:,} of the job" if capture.first_step is not None else ""
        head = f"joint op trace of the same {words.plural(capture.steps, 'step')} of {names}{numbers}"
    else:
        head = f"op traces of the same time of {names or 'no task'}; no step is the same"
    lines = [head, *(f"{words.printable(task.name)}: {_communication(task)}" for task in capture.tasks[:MOST_ROWS])]
    return [*lines, f"missed: {words.printable(', '.join(capture.missed))}"] if capture.missed else lines


def _communication(task: JointTask) -> str:
    items = [f"step {format_ns(task.step_ns)}"] if task.step_ns is not None else []
    if task.communication is not None:
        whole = task.communication.exposed_ns + task.communication.hidden_ns
        items.append(f"communication {format_ns(whole)}, {format_ns(task.communication.hidden_ns)} of it hidden")
    if task.apart:
        items.append("its steps are not known to end with those of the others")
    return ", ".join(items) or words.plural(task.traced, "step")


def _line(row: MemberRow) -> str:
    name = words.printable(row.name)
    if row.incarnations > 1:
        name += f" (started {row.incarnations} times)"
    if not row.steps:
        return f"{name}: {'serves' if row.serves else 'makes no steps'}"
    items = [f"step {format_ns(row.step_ns)}" if row.step_ns is not None else words.plural(row.steps, "step")]
    if row.samples_per_s is not None:
        items.insert(0, f"{format_rate(row.samples_per_s)} samples/s")
    if row.own_ns is not None and row.waits_ns is not None:
        items += [f"{format_ns(row.own_ns)} own time", f"waits {format_ns(row.waits_ns)}"]
    if row.gain is not None and row.gain.low >= LEAST_GAIN:
        bounds = f"{100 * row.gain.low:.0f}-{100 * row.gain.high:.0f}"
        items.append(f"without its delay -{format_ratio(row.gain.ratio)} ({bounds}) of the step")
    if row.first is not None:
        items.append(f"first finding {words.printable(row.first.code)}")
    return f"{name}: {', '.join(items)}"


def _lines(asked: Asked) -> Said:
    report = asked.report
    imported = words.is_imported(report)
    if report.cluster is not None:
        where = Where.IMPORTED if imported else Where.HEAD_END
        yield Lines(label="members", texts=[tuple(head(report.cluster)), *rows(report.cluster)], where=where)
    elif not imported:
        roles = tuple(words.process_role_items(report.session))
        yield Lines(label="processes", texts=[roles], where=Where.HEAD_END)


def _blocks(asked: Asked) -> Blocks:
    cluster = asked.report.cluster
    if cluster is not None:
        yield Paragraph(words.SEPARATOR.join(head(cluster)), "note")
        yield Listed(rows(cluster))


SECTION = Section(key="members", title="Members", lines=_lines, blocks=_blocks)
