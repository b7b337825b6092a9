"""What a report says at its head: how much of the time is not explained, and whether anything was found at all.

"Nothing significant found" is said only if every part of the time is explained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from stepscope.report import ledger_rows, words

if TYPE_CHECKING:
    from stepscope.model.report.ledger import LedgerEntry
    from stepscope.model.report.report import Report, SessionSummary
    from stepscope.tables.findings import Finding

NOTHING = "nothing significant found"
"""The verdict for a job with nothing wrong."""
NO_SAVING = "no finding with a known saving; the largest parts of the time follow"
"""The verdict for a job that has general findings only."""
MIN_UNEXPLAINED = 0.05
"""Share of the wall time from which unexplained time is said (docs/decisions/0042)."""
MIN_LISTED = 0.10
"""Share of the time from which a general finding is listed although it is information."""
MIN_LISTED_ONCE = 0.25
"""The same for time that a run pays for once."""
MIN_LISTED_PLACE = 0.5
"""Share from which a general finding is listed that advises nothing: its place is what there is to know."""
MIN_BETWEEN = 0.02
"""Share of the run from which what lies between the steps is said to be in the share that they take."""
FEW_STEPS = 0.5
"""Share of the wall time below which a report says what a share of the step is a share of."""
MAX_LISTED = 3
MAX_PARTS = 3
MAX_PLACES = 2
NOT_MEASURED = ("DX115", "DX108")
"""Diagnostics that say why no process was measured: the agent failed, or there was nothing to measure."""
DAMAGED = "DX106"
"""Code of the diagnostics about files of the session that cannot be read."""
UNREAD, READ = "parts of this session cannot be read, and are left out", "what can be read"
CONTENTION = "CFG001"
"""The finding about what others took of the CPUs."""
GENERAL = "GEN"
"""Codes of general findings begin so."""


def unread_text(report: Report) -> str:
    """That files of the session are damaged, as the first that is said of it; "" if none is."""
    return UNREAD if any(one.code == DAMAGED for one in report.diagnostics) else ""


def no_steps_text(report: Report) -> str:
    """Of a job without steps: that none were seen, or which are in what can be read: those of an op trace, if any."""
    if not unread_text(report):
        return "no steps seen"
    return f"{traced_text(report) or 'no steps'} in {READ}"


def head_items(report: Report) -> list[str]:
    """What is said first of a measured job: whose report it is, its steps and how fast they are."""
    summary, times = report.session, report.session.step_times
    items = [unread_text(report), words.printable(summary.member)]
    if not summary.steps:
        return [*items, no_steps_text(report)]
    items += [words.steps_text(summary), words.throughput_text(summary)]
    pair = words.time_pair(times.mean_ns, times.p95_ns) if times is not None else None
    return [*items, "step {} (p95 {})".format(*pair)] if pair is not None else items


def traced_text(report: Report) -> str:
    """``only 6 traced steps``, of which all shares are in a report without others; "" if there are none."""
    return f"only {words.plural(report.traced.count, 'traced step')}" if report.traced and report.traced.count else ""


def nothing_to_show(report: Report) -> str:
    """Why a job without steps and findings is shown in three lines: it ended too early, or nothing of it was measured.
    "" if there is more to say.
    """
    summary = report.session
    more = summary.steps or words.is_imported(report) or summary.end == "outside" or words.significant(report)
    if more or listed(report):
        return ""
    known = {d.code: d.text for d in report.diagnostics}
    said = next((f"{code} {words.printable(known[code])}" for code in NOT_MEASURED if code in known), "")
    if NOT_MEASURED[0] not in known and (summary.exit_code or summary.end == "unknown"):
        what = "its memory ran out" if summary.end == "memory" else "it ended"
        return f"{what} before its first step"
    return said.partition(", so ")[0] if words.framework_text(summary) == words.NO_FRAMEWORK else ""


def nothing_text(report: Report) -> str:
    """Text for a report without findings above info: what is not explained, or why detectors could not run."""
    if words.is_imported(report) and not report.op_traces:
        return "no findings: sampled stacks hold no steps and no ops, stepscope flame draws them"
    if words.is_imported(report):
        file = words.analysed_file(report) if report.cluster is None else ""  # of ranks all are
        about = f" about the steps of {words.printable(file)}" if file else ""
        return f"no findings{about}: the job was not measured, so only its op traces were analysed"
    if why := nothing_to_show(report):
        return why
    if not report.session.steps:
        seen, hint = f"no steps in {READ}", ""
        if not unread_text(report):
            seen, hint = "no steps were seen", "; stepscope.step() marks the steps of any loop"
        return f"{seen}, so there are no findings about them{hint}"
    if missing := unexplained_text(report):
        return f"no finding explains {missing}"
    nothing = f"{NOTHING} in {READ}" if unread_text(report) else NOTHING
    return NO_SAVING if listed(report) else nothing


def unexplained_text(report: Report) -> str:
    """``31 % of the time: 22 % compute at train.py:41 make_step (Conv2D, MatMul), ...``; "" if too little is left."""
    if report.unexplained_ratio < MIN_UNEXPLAINED:
        return ""
    left = [entry for entry in report.ledger if entry.maker is None and entry.settled_by == "unexplained"]
    parts = [_part(entry) for entry in sorted(left, key=lambda entry: -_rest(entry))[:MAX_PARTS]]
    whole = f"{words.percent(report.unexplained_ratio)} % "
    said = parts[0].removeprefix(whole) if len(parts) == 1 else words.SEPARATOR.join(parts)
    return f"{whole}of the time: {said}"


def _rest(entry: LedgerEntry) -> float:
    return entry.ratio * (1.0 - entry.explained_ratio)


def _part(entry: LedgerEntry) -> str:
    """``22 % compute at train.py:41 make_step (Conv2D, MatMul)``."""
    word = words.component_word(entry.component) if entry.component else ledger_rows.phase_word(entry)
    places = ", ".join(words.place_text(place, short=True) for place in entry.where[:MAX_PLACES])
    said = f"{words.percent(_rest(entry))} % {word}{f' at {places}' if places else ''}"
    what = entry.text.partition("; ")[0]
    return f"{said} ({words.printable(what)})" if what else said


def steps_ratio(report: Report) -> float | None:
    """Share of the steps in the job's wall time, evaluations and other work within them included; None where no ledger
    says it.
    """
    mine = _own_ratios(report)
    return min(1.0, max(sum(mine), _steady_ratio(report.session))) if mine else None


def _own_ratios(report: Report) -> list[float]:
    """Shares of the parts of the steps in the job's wall time, without what lies between the steps."""
    return [entry.ratio for entry in report.ledger if entry.maker is None and entry.phase == "steps"]


def _steady_ratio(session: SessionSummary) -> float:
    """Of the main thread's steps after the first ones, counted ones included, each until the next one begins."""
    times, main = session.step_times, [maker for maker in session.step_makers if maker.main]
    if times is None or not session.wall_ns:
        return 0.0
    alone = len(main) == 1 and main[0].threads == 1
    steady = max(times.count, main[0].count - times.warmup_steps) if alone else times.count
    return steady * times.mean_ns / session.wall_ns


def steps_note(report: Report) -> str:
    """Where the steps are the smaller part of the run: what a share of the step is a share of. Else ""."""
    ratio = steps_ratio(report)
    if ratio is None or ratio >= FEW_STEPS:
        return ""
    what = (
        "the steps take"
        if ratio - sum(_own_ratios(report)) < MIN_BETWEEN
        else "the steps, each until the next begins, take"
    )
    return f'{what} {words.percent(ratio)} % of the run; shares of "the step" refer to this part alone'


def of_few_steps(report: Report, finding: Finding) -> bool:
    """Whether a finding is of the steps alone, and these are the smaller part of the run: so is what it would gain."""
    of_step = not finding.cost.of_turn and not words.is_between_steps(finding)
    return of_step and bool(steps_note(report))


def gpu_text(report: Report) -> str:
    """``GPU busy 12 %`` of the steady steps; "" where no GPU was sampled."""
    busy = report.session.gpu_busy_ratio
    return f"GPU busy {words.percent(busy)} %" if busy is not None else ""


def exit_text(summary: SessionSummary) -> str:
    """How the job ended; empty for success, and for a job that was only observed for some time."""
    code = summary.exit_code
    if summary.end == "memory":
        return "killed for lack of memory" + (" (signal 9)" if code is not None else "")
    if code is None:
        return {"clean": "ended, exit code not observed", "outside": ""}.get(summary.end, "end not recorded")
    if code < 0:
        return f"ended by signal {-code}"
    return f"exit code {code}" if code else ""


def end_text(summary: SessionSummary) -> str:
    """How the job ended, success included."""
    good = "observed from outside" if summary.end == "outside" else "exit code 0"
    return exit_text(summary) or good


def is_general(finding: Finding) -> bool:
    """Whether a finding is a general detector's."""
    return finding.code.startswith(GENERAL)


def machine(report: Report) -> Finding | None:
    """The load of the machine, if there are other findings: it slows all of them and explains none."""
    mine = next((f for f in report.findings if f.code == CONTENTION and not f.where), None)
    return mine if mine is not None and any(f is not mine for f in words.significant(report)) else None


def machine_text(report: Report) -> str:
    """``other processes (archive.py) take 1 CPU of 2, and ...: costs 20 % (15-30, modelled) of the step``; or ""."""
    mine = machine(report)
    if mine is None:
        return ""
    said = words.printable(mine.title)
    return f"{said}{words.SEPARATOR}{words.cost_text(replace(mine.cost, exclusive_ratio=None), between_steps=False)}"


def listed(report: Report) -> list[Finding]:
    """General findings that are information and are listed all the same, the largest first: those that advise, or that
    say where half of the time went.
    """
    mine = [f for f in report.findings if f.severity == "info" and is_general(f)]
    return [f for f in mine if f.cost.high >= (_least(f) if f.remedies else MIN_LISTED_PLACE)][:MAX_LISTED]


def _least(finding: Finding) -> float:
    """Share from which a general finding is listed: what a run pays for once weighs less in a longer one."""
    return MIN_LISTED_ONCE if finding.exposed_stage == "initialization" else MIN_LISTED
