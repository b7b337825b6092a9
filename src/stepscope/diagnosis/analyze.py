"""From a session to its report: derive, detect, summarise; and write the report files into the session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stepscope import store
from stepscope.causes.cluster import first_death, traced_ranks
from stepscope.causes.host import no_progress, tasks, thread_deaths
from stepscope.causes.host.line_heat import HotLines
from stepscope.causes.system import memory_kill, translation
from stepscope.derive import job_framework
from stepscope.derive.ledger import pauses
from stepscope.derive.machine import system_calls
from stepscope.derive.steps import step_makers
from stepscope.derive.steps.anatomy import NAMED_BY
from stepscope.derive.view import SessionView
from stepscope.detectors import lost_records
from stepscope.diagnosis import capture_account, imported_ranks, joint, nearby, passes, settle
from stepscope.diagnosis.passes import Facts
from stepscope.model import frameworks
from stepscope.model.log.events import FRAMEWORKS, AgentDiagnostic
from stepscope.model.report.components import COMPONENTS, ComponentName
from stepscope.model.report.report import Component, LineHeat, Report, SessionSummary
from stepscope.model.report.step_summary import StepTimes
from stepscope.model.session.session import records_lost
from stepscope.report import html, json_report, markdown, text
from stepscope.report.sections import (
    failures,
    ledger,
    limits,
    op_table,
    op_trace_summaries,
    overhead,
    part_basis,
    process_roles,
    series,
    stage_shares,
    step_detail,
    step_summary,
    traced_steps,
    turns,
)
from stepscope.report.sections.cluster import members
from stepscope.report.sections.input import bound as input_bound
from stepscope.report.sections.input import tree as input_tree
from stepscope.report.sections.machine import clocks, links
from stepscope.report.sections.memory import room as memory_room
from stepscope.tables.findings import Diagnostic
from stepscope.tables.place import Place
from stepscope.tables.units import format_number_of
from stepscope.wire.kinds import Trait, kinds_with

if TYPE_CHECKING:
    from pathlib import Path

    from stepscope.derive.job_framework import JobFramework
    from stepscope.derive.steps.steps import Steps
    from stepscope.model.report.op_summary import TracedSteps
    from stepscope.model.report.report import JobEnd
    from stepscope.model.session.session import Session, Worker

HANGS = "HNG001"
"""The detector that names a dead thread where the job waits for it."""
MAX_DIAGNOSTICS = 20
"""Most diagnostics in a report; further ones are dropped."""
MAX_HOT_LINES = 100


def write_reports(session_dir: Path) -> Report:
    """Analyse the session and write report.json, .txt, .md and .html into it, and what files near the job say.

    Raises:
        OSError: the session's directory cannot be written.
    """
    session = nearby.keep(session_dir, store.open_session(session_dir))
    report = report_of(session)
    pages = {
        "report.json": json_report.encode(report),
        "report.txt": text.render(
            report, session_path=str(session_dir), html_path=str(session_dir / "report.html")
        ).encode(),
        "report.md": markdown.render(report, sources=session.sources).encode(),
        "report.html": html.render(report, sources=session.sources).encode(),
    }
    for name, page in pages.items():
        part = session_dir / f".{name}.part"
        part.write_bytes(page)
        part.replace(session_dir / name)
    return report


def report_of(session: Session) -> Report:
    """Report of a session in memory. Pure, except for the time limit of the static check."""
    return report_of_view(SessionView(session))


def report_of_view(view: SessionView) -> Report:
    """Like ``report_of``, for callers that need the view as well."""
    session = view.session
    if session.peers.members:
        return joint.build(view, report_of)
    ranks = view.get(traced_ranks.build)
    if ranks is not None:
        return imported_ranks.build(view, ranks, report_of_view)
    lines = HotLines(view)
    anatomy = components(view)
    entries, overlaps = ledger.build(view)
    ops, unread = op_table.build(view)
    traces, told = op_trace_summaries.build(session)
    traced, unseen = traced_steps.build(view)
    reach, unreached = input_bound.build(view)
    tree, unshown = input_tree.build(view)
    framework = view.get(job_framework.build)
    facts = Facts(
        view=view, lines=lines, anatomy=anatomy, bound=reach, parts=framework.parts if framework is not None else ()
    )
    found = passes.build(facts, entries)
    return Report(
        session=_summary(view, framework),
        overhead=capture_account.with_captures(overhead.account(view), session.manifest, traces, view.traces.others),
        anatomy=anatomy,
        stages=stage_shares.build(view),
        findings=found.findings,
        checked=found.checked,
        diagnostics=_diagnostics(
            view,
            (*found.diagnostics, *unread, *told, *unseen, *unreached, *unshown, *overlaps),
            traced=traced,
            hangs=any(f.code == HANGS for f in found.findings),
        ),
        tasks=view.get(tasks.build),
        ops=ops,
        limits=limits.build(view),
        input_bound=reach,
        input_tree=tree,
        line_heat=_line_heat(view, lines),
        source_check=found.source_check,
        slow_steps=step_detail.slow_steps(view),
        series=series.build(view),
        op_traces=traces,
        stack_files=op_trace_summaries.stack_files(session),
        traced=traced,
        memory=view.get(translation.maps),
        memory_room=memory_room.build(view),
        ledger=found.ledger,
        turns=turns.build(view),
        system_calls=system_calls.summary(session, view.steps),
        links=links.build(view),
        clocks=clocks.build(view),
        cluster=members.build(view),
        unexplained_ratio=settle.unexplained(found.ledger),
    )


def _line_heat(view: SessionView, lines: HotLines) -> tuple[LineHeat, ...]:
    return tuple(
        LineHeat(file=view.place(file, line).file, line=line, ratio=ratio)
        for file, line, ratio in lines.hottest(MAX_HOT_LINES)
    )


def _summary(view: SessionView, framework: JobFramework | None) -> SessionSummary:
    session, steps = view.session, view.steps
    makers = step_makers.build(steps) if steps else ()
    manifest = session.manifest
    return SessionSummary(
        id=manifest.id,
        command=manifest.command,
        framework=_frameworks(view, framework) or ("" if records_lost(session) else "none"),
        hosts=1,
        steps=sum(maker.count for maker in makers if maker.main),
        steps_at_least=step_summary.at_least(view, ended=_end(view)),
        throughput=step_summary.throughput(makers),
        wall_ns=manifest.ended_ns,
        exit_code=manifest.exit_code,
        end=_end(view),
        processes=len(session.workers),
        member=process_roles.member(view),
        step_times=_step_times(steps) if steps else None,
        members=process_roles.build(view),
        inference=process_roles.inference(view),
        step_makers=step_summary.makers(view, makers),
        step_choice=step_summary.choice(view),
        gpu_busy_ratio=step_summary.gpu_busy_ratio(view),
    )


def _frameworks(view: SessionView, framework: JobFramework | None) -> str:
    """``tensorflow 2.21.0, keras 3.15.1``; ``keras 3.15.1 on jax 0.10.2`` where Keras uses another backend."""
    said = {name: f"{name} {version}" for name, version in view.frameworks.items() if name in FRAMEWORKS}
    backend = framework.backend if framework is not None else ""
    if backend and backend != "tensorflow" and frameworks.KERAS in said:
        said[frameworks.KERAS] += f" on {said.pop(backend, backend)}"
    return ", ".join(said.values())


def _end(view: SessionView) -> JobEnd:
    manifest, kill = view.session.manifest, view.get(memory_kill.build)
    if kill is not None and kill.sure:
        return "memory"
    if manifest.exit_code is not None:
        return "code"
    if manifest.mode == "attach":
        return "outside"
    return "clean" if failures.ended_by_itself(manifest) else "unknown"


def _step_times(steps: Steps) -> StepTimes:
    durations = steps.durations[steps.steady]
    warm = np.flatnonzero(steps.steady)[0]
    p50, p95, p99 = (int(v) for v in np.percentile(durations, [50, 95, 99]))
    return StepTimes(
        count=len(durations),
        mean_ns=int(pauses.mean_ns(steps)),
        p50_ns=p50,
        p95_ns=p95,
        p99_ns=p99,
        warmup_steps=int(warm),
        warmup_ns=int(steps.starts[warm] - steps.starts[0]),
        source=steps.title,
    )


def components(view: SessionView) -> tuple[Component, ...]:
    """The split of the mean step, the largest share first."""
    anatomy = view.anatomy
    if anatomy is None or not anatomy.wall_ns:
        return ()
    found, mean = [], pauses.mean_ns(anatomy.steps)
    for name, about in COMPONENTS.items():
        ratio = anatomy.ratio(name)
        if ratio <= 0:
            continue
        who, where = _contributor(view, name)
        found.append(
            Component(
                component=name,
                pipeline_stage=about.stage,
                ratio=ratio,
                ns_per_step=round(ratio * mean),
                name=who,
                where=where,
                basis=part_basis.of(view, name),
            )
        )
    return tuple(sorted(found, key=lambda c: -c.ratio))


def _lost(worker: Worker) -> str:
    """How many records of a process are missing, when, and how many of them because they were damaged."""
    count = format_number_of(f"{int(worker.lost.records.sum()):,}", "records")
    damaged = f", {worker.info.damaged_records:,} of them damaged" if worker.info.damaged_records else ""
    text = f"process {worker.info.pid}: {count} lost {lost_records.when(worker.lost)}{damaged}"
    return f"{text}: steps then are left out of the figures, and no detector says that it is clear"


def _contributor(view: SessionView, component: ComponentName) -> tuple[str, Place | None]:
    """The largest contributor to callbacks, saving and other Python."""
    kinds = [kind for kind in NAMED_BY.get(component, ()) if kind not in kinds_with(Trait.UNNAMED)]
    if kinds:
        rows = view.named_times(*kinds)
        if rows:
            name = rows[0].name
            return name.text, view.place(name.file, name.line, name.end_line) if name.file else None
    if component == "other-python":
        spots = view.hot_spots(component)
        if spots:
            spot = spots[0].culprit
            return spot.function, view.place(spot.file, spot.line, function=spot.function)
    return "", None


def _diagnostics(
    view: SessionView, failures: tuple[Diagnostic, ...], *, traced: TracedSteps | None, hangs: bool
) -> tuple[Diagnostic, ...]:
    """Diagnostics of the session, of the agents (each text once) and of the analysis."""
    session = view.session
    found = capture_account.noted(session.manifest.diagnostics, traced)
    for worker in session.workers:
        found += [Diagnostic(code=e.code, text=e.text) for e in worker.all(AgentDiagnostic)]
        if len(worker.lost):
            found.append(Diagnostic(code="DX010", text=_lost(worker)))
        if worker.info.lost_lines:
            lines = format_number_of(str(worker.info.lost_lines), "lines")
            text = f"process {worker.info.pid}: {lines} could not be written to the log"
            found.append(Diagnostic(code="DX011", text=text))
    died = view.get(thread_deaths.build)
    if died and not hangs:
        text = f"{thread_deaths.sentence(view, died)}: no other thread was notified, and its work is no longer done"
        found.append(Diagnostic(code="DX170", text=text))
    found += [Diagnostic(code="DX172", text=text) for text in no_progress.ended(view)]
    found += [Diagnostic(code="DX194", text=text) for text in [view.get(first_death.build)] if text]
    found += [Diagnostic(code="DX118", text=text) for text in capture_account.failures(session.manifest)]
    found += [Diagnostic(code=op_table.UNREADABLE, text=text) for text in view.traces.problems]
    if view.pipeline is not None:
        found += [Diagnostic(code="DX020", text=text) for text in view.pipeline.diagnostics[:1]]
    unique = list(dict.fromkeys((d.code, d.text) for d in [*found, *failures]))
    return tuple(Diagnostic(code=code, text=text) for code, text in unique[:MAX_DIAGNOSTICS])
