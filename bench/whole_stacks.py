"""Native stacks: what share is whole, from the start of its thread to the leaf, and what the others lack.

Usage: whole_stacks.py [--windows 4] [--seconds 5] [--python PROGRAM] [--onednn PROGRAM] [--plain PROGRAM] [--write]

programs/generated_input.py trains under ``stepscope run``; windows are opened as the sidecar opens them. Each recording
is decoded twice: with Python's frames of the very moment (``native.cpython.bpf_attach``), and without, as for users
who may not have them. Samples in generated code are counted apart. ``--python``: the job's, with TensorFlow;
``--onednn``: one that runs programs/convolutions.py; ``--plain``: one without TensorFlow, which runs
programs/call_backs.py, without an agent. Each may be given more than once. ``--write`` puts the tables into
docs/benchmarks/whole-stacks.md.
"""

from __future__ import annotations

import argparse
import functools
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from _windows import armed
from stepscope.collector.captures import op_captures
from stepscope.derive.stacks import op_at_sample, session_stacks
from stepscope.derive.stacks.op_at_sample import OpAnswer
from stepscope.derive.stacks.op_of_pool_thread import OP_TRACE, with_ops_of_pool_threads
from stepscope.derive.stacks.splice import runs_python, spliced
from stepscope.model.log.events import ThreadSeen
from stepscope.native.cpython.python_memory import Memory
from stepscope.native.formats import perf_data, unwind
from stepscope.native.kernel import perf
from stepscope.native.memory.address_space import AddressSpace
from stepscope.native.windows.native_decode import CPU, ONEDNN_CODE, StackDecoder
from stepscope.native.windows.native_window import NativeWindow
from stepscope.readers import native_names
from stepscope.sessions.bundle import open_session
from stepscope.sidecar import capturing
from stepscope.store.manifests import read_manifest
from stepscope.tables.made_frames import NOT_SAMPLED
from stepscope.tables.stacks import FrameKind, StackFlag, StackProfile
from stepscope.wire import commands

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks" / "whole-stacks.md"
PROGRAM = Path(__file__).with_name("programs") / "generated_input.py"
ONEDNN = PROGRAM.with_name("convolutions.py")
PLAIN = PROGRAM.with_name("call_backs.py")
HEAD = """# Which share of native stacks is whole?

Printed by `make bench-whole-stacks ARGS=--write`. A stack is whole when it leads from the start of its thread to the
leaf and all Python functions in it have names. Samples in generated code (oneDNN) are counted apart: they are attached
to their callers, never whole. Each window is decoded twice: with the frames that a BPF program saw at the very moment
of each sample (root), and without it. generated_input.py is a Keras fit that gets its input from a Python generator
through numpy_function and traces new graphs all the time; convolutions.py is a Keras fit of an image network, with
matrix products of changing sizes between its epochs, and an op trace over each window; call_backs.py calls Python from
sorted, map, re, json, repr, reduce, properties and comparisons, on two threads, without an agent.

"""
WARM_S, SETTLE_S, WRITTEN_S = 20.0, 1.0, 60.0
ASKED = 0.99
WITH, WITHOUT = "with frames of the moment", "without"


class Window(NamedTuple):
    """One window, decoded both ways, and why each of its stacks is cut natively."""

    profiles: dict[str, StackProfile]
    cuts: list[str]
    rows: int


class Measured:
    """All windows of a program."""

    def __init__(self) -> None:
        """Start without windows."""
        self.reasons: dict[str, Counter[str]] = {WITH: Counter(), WITHOUT: Counter()}
        """Reasons why stacks are not whole, by way of decoding."""
        self.samples = self.rows = 0
        self.profiles: list[StackProfile] = []
        self.ops: dict[int, op_at_sample.OpTimeline] = {}
        """Op timelines of the windows by process."""

    def add(self, window: Window, named: Callable[[StackProfile], StackProfile]) -> None:
        """Add one window; ``named``: puts what the agent saw into a profile."""
        self.samples += len(window.cuts)
        self.rows += window.rows
        for way, profile in window.profiles.items():
            made = named(profile)
            self.reasons[way].update(reason(made, at, cut) for at, cut in enumerate(window.cuts))
            self.profiles += [made] * (way == WITH)

    def generated(self) -> Counter[str]:
        """Facts known about samples in generated code."""
        timed, told = op_at_sample.with_ops_at_samples(self.profiles, self.ops)
        found = Counter(
            one
            for made in with_ops_of_pool_threads(timed)
            for at in range(len(made.samples))
            for one in generated(made, at)
        )
        return found + Counter(how.name for hows in told for how in hows) + self._checked()

    def _checked(self) -> Counter[str]:
        """Check, where a single op of oneDNN's ran: does the thread that generated code works for lead to it?"""
        found: Counter[str] = Counter()
        for profile in self.profiles:
            columns = (profile.samples.at_ns, profile.samples.thread, profile.samples.op_thread)
            for at_ns, thread, op_thread in zip(*(column.tolist() for column in columns), strict=True):
                ops = self.ops.get(profile.threads[thread].pid)
                exact = ops.on(op_thread, at_ns) if ops is not None and op_thread else None
                runs = [run for run in ops.all_at(at_ns) if run.type.startswith(op_at_sample.ONEDNN)] if ops else []
                if exact is not None and len(runs) == 1:
                    found.update(["single", *(["agrees"] if runs == [exact] else [])])
        return found


def decoded(folder: Path, window: NativeWindow) -> Window:
    """Contents of a window's file; the process still runs."""
    pid, root = window.pid, f"/proc/{window.pid}/root"
    recorded = perf_data.read(folder / "perf.data")
    profiles = {}
    for name, watch in ((WITH, window.watch), (WITHOUT, None)):
        memory = Memory(pid)
        decoder = StackDecoder(recorded, pid, origin_ns=0, root=root, memory=memory, watch=watch)
        profiles[name] = next(one for one in decoder.profiles(name) if one.event == CPU)
        memory.close()
    space = AddressSpace(root, (one for one in recorded.mappings if one.pid == pid))
    cuts, rows = [], 0
    for sample in recorded.samples:
        event = recorded.events[sample.event]
        if sample.pid == pid and event.registers and event.name.startswith("cpu-clock"):
            registers = unwind.dwarf_registers(event.registers, sample.registers)
            cuts.append(unwind.walk(space, registers, sample.stack).cut)
            rows += window.watch is not None and window.watch.row(sample.tid, sample.at_ns) is not None
    return Window(profiles, cuts, rows)


def reason(profile: StackProfile, at: int, cut: str) -> str:
    """Why a sample is not whole; "" if it is, "generated" for those that are counted apart."""
    flags = int(profile.samples.flags[at])
    frames = profile.frames_of(int(profile.samples.stack[at]))
    if flags & StackFlag.ATTACHED:
        return "generated: attached"
    if frames and frames[-1].kind is FrameKind.GENERATED:
        return "generated: alone"
    if flags & StackFlag.WHOLE:
        return "approximate" if flags & StackFlag.APPROXIMATE else ""
    if cut:
        where = f": {frames[0].function[:50]}" if cut in (unwind.NO_ROW, unwind.LOST, unwind.ENDLESS) else ""
        return f"cut natively: {cut}{where}"
    if frames and runs_python(frames[-1]):
        return "Python: the interpreter's loop itself begins or ends"
    return "Python: functions not known" if NOT_SAMPLED in frames else "other"


def generated(profile: StackProfile, at: int) -> list[str]:
    """Facts known about a sample in generated code; empty for others."""
    flags = int(profile.samples.flags[at])
    frames = profile.frames_of(int(profile.samples.stack[at]))
    inner = next((frame for frame in reversed(frames) if frame.kind is not FrameKind.KERNEL), None)
    if inner is None or inner.kind is not FrameKind.GENERATED:
        return []
    known = ["all"]
    if inner.resolved or inner.function == ONEDNN_CODE:
        known.append("named")
    if flags & StackFlag.ATTACHED:
        known += ["attached", *(["approximate"] if flags & StackFlag.APPROXIMATE else [])]
        traced = any(frame.module == OP_TRACE for frame in frames)
        known += ["op"] * (traced or bool(native_names.owner(frames))) + ["traced"] * traced
    if flags & StackFlag.WHOLE:
        known.append("whole")
    return known


def measure(python: str, program: Path, windows: int, seconds: float) -> Measured:
    """Measure a program with TensorFlow, under ``stepscope run``."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        session = folder / "s.stepscope"
        words = [
            sys.executable,
            "-m",
            "stepscope",
            "run",
            "-q",
            "--budget",
            "0%",
            "--session",
            str(session),
            "--",
            python,
        ]
        job = subprocess.Popen([*words, str(program)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            pid, inbox = armed(job, session)
            time.sleep(WARM_S)
            found = []
            for number in range(windows):
                commands.send(inbox, {"kind": commands.STACKS, "hz": perf.MAX_HZ, "seconds": seconds + 3.0})
                asked = commands.send(inbox, beside(seconds)) if program == ONEDNN else ""
                found.append(take(pid, folder / f"w{number}", seconds, functools.partial(_enough, inbox, asked)))
                until = time.monotonic() + WRITTEN_S
                while program == ONEDNN and len(read_manifest(session).captures) <= number and time.monotonic() < until:
                    time.sleep(SETTLE_S)
                time.sleep(SETTLE_S)
        finally:
            job.terminate()
            job.wait()
        return counted(session, found)


def beside(seconds: float) -> dict[str, object]:
    """The command for an op trace over a window, as the sidecar sends it."""
    lasts = seconds + perf.COUNT_SECONDS + capturing.BESIDE_MARGIN_S
    return {
        "kind": "ops",
        "steps": 1,
        "seconds": lasts,
        "level": op_captures.LEVEL,
        "margin": 0,
        "thread": 0,
        "anchors": [],
        "task": None,
    }


def measure_plain(python: str, windows: int, seconds: float) -> Measured:
    """Measure a program without an agent, observed by windows only."""
    job = subprocess.Popen([python, str(PLAIN)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    measured = Measured()
    try:
        with tempfile.TemporaryDirectory() as name:
            time.sleep(SETTLE_S)
            for number in range(windows):
                measured.add(take(job.pid, Path(name) / f"w{number}", seconds), lambda profile: spliced(profile, []))
    finally:
        job.kill()
        job.wait()
    return measured


def _enough(inbox: str, asked: str) -> None:
    """End the requested op trace."""
    if asked:
        commands.send(inbox, {"kind": commands.ENOUGH, "capture": asked})


def take(pid: int, folder: Path, seconds: float, over: Callable[[], object] = bool) -> Window:
    """Record one window; ``over`` is called at its end."""
    window = NativeWindow(pid, folder, perf.abilities(), perf.Rates(cores=1.0, faults_per_s=10_000.0), seconds)
    while not window.poll(time.monotonic_ns()):
        time.sleep(0.1)
    over()
    if window.watch is not None:
        window.watch.update()
    made = decoded(folder, window)
    window.close()
    return made


def counted(session: Path, found: list[Window]) -> Measured:
    """The windows, with the agent's samples of the session."""
    recorded = open_session(session)
    origin_ns, ours = recorded.manifest.origin_monotonic_ns, recorded.manifest.run_dir
    seen = [session_stacks.python_profile(worker) for worker in recorded.workers]
    agents = {
        (worker.info.pid, thread.native)
        for worker in recorded.workers
        for thread in worker.all(ThreadSeen)
        if thread.name == session_stacks.AGENT_THREAD
    }

    def named(profile: StackProfile) -> StackProfile:
        moved = replace(
            profile,
            samples=replace(profile.samples, at_ns=profile.samples.at_ns - origin_ns),
            begin_ns=profile.begin_ns - origin_ns,
            end_ns=profile.end_ns - origin_ns,
        )
        return spliced(moved, seen, agents=agents, ours=ours)

    measured = Measured()
    for window in found:
        measured.add(window, named)
    measured.ops = op_at_sample.of_session(recorded, measured.profiles)
    return measured


def apart(known: Counter[str]) -> str:
    """Text about samples in generated code."""
    number = known["all"]
    if not number:
        return "none"
    shares = {what: f"{known[what]:,} ({100 * known[what] / number:.1f} %)" for what in ("named", "attached", "op")}
    told = {how: known[how.name] for how in OpAnswer}
    return (
        f"{number:,} samples in generated code. Named as oneDNN's: {shares['named']}, the others\nas generated code; "
        f"attached to callers: {shares['attached']}, of these {known['approximate']:,} with some by time;\n"
        f"to their op: {shares['op']}; counted as whole: {known['whole']:,}.\n\n"
        f"By the op trace: {known['traced']:,}: {told[OpAnswer.EXACT]:,} by the thread that the sample works for, "
        f"{told[OpAnswer.BESIDE]:,} by the thread's samples\nbeside, {told[OpAnswer.ALONE]:,} as the only op that ran, "
        f"{told[OpAnswer.PRIMITIVE]:,} as the only one with that primitive. By other samples alone: "
        f"{known['op'] - known['traced']:,}.\nAmbiguous: {told[OpAnswer.AMBIGUOUS]:,}; no op that it may be: "
        f"{told[OpAnswer.NONE]:,}; outside of the op trace: {told[OpAnswer.NO_TRACE]:,}.\n"
        f"Where a single op of oneDNN's ran, the thread that the sample works for led to it in {known['agrees']:,} of "
        f"{known['single']:,}"
    )


def table(python: str, what: str, measured: Measured) -> str:
    """The table of one Python."""
    reasons, samples, rows = measured.reasons, measured.samples, measured.rows
    version = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout.strip()
    lines = [
        f"## {version}, {what}",
        "",
        f"{samples:,} samples of CPU time; frames of the moment seen for {rows:,} of them.",
        "",
    ]
    lines += [f"| of samples outside of generated code | {WITH} | {WITHOUT} |", "|---|---:|---:|"]
    outside = {way: sum(n for why, n in of.items() if not why.startswith("generated")) for way, of in reasons.items()}
    whole = {way: of[""] + of["approximate"] for way, of in reasons.items()}

    def row(name: str, counts: dict[str, int]) -> str:
        shares = (f"{100 * counts[way] / max(outside[way], 1):.1f} % ({counts[way]:,})" for way in (WITH, WITHOUT))
        return f"| {name} | " + " | ".join(shares) + " |"

    lines.append(row("**whole**", whole))
    lines.append(
        row("of these with functions from samples close by", {way: of["approximate"] for way, of in reasons.items()})
    )
    others = Counter({why: n for of in reasons.values() for why, n in of.items() if why and why != "approximate"})
    for why, _ in sorted(others.items(), key=lambda one: -max(of[one[0]] for of in reasons.values())):
        if not why.startswith("generated"):
            lines.append(row(why, {way: of[why] for way, of in reasons.items()}))
    verdict = "holds" if whole[WITH] >= ASKED * outside[WITH] else "does not hold"
    lines += ["", f"Counted apart: {apart(measured.generated())}. At least {100 * ASKED:.0f} % whole: {verdict}.", ""]
    return "\n".join(lines)


def _framework(python: str) -> str:
    """TensorFlow's version."""
    words = "import importlib.metadata as m; print(m.version(m.packages_distributions()['tensorflow'][0]))"
    done = subprocess.run([python, "-c", words], capture_output=True, text=True, check=False)
    return f", TensorFlow {done.stdout.strip()}" if done.returncode == 0 else ""


def main() -> int:
    """Measure, print, perhaps write."""
    parser = argparse.ArgumentParser(description="which share of native stacks is whole")
    parser.add_argument("--windows", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--python", action="append")
    parser.add_argument("--onednn", action="append", default=[])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--plain", action="append", default=[])
    options = parser.parse_args()
    if not perf.abilities().perf:
        raise SystemExit(perf.abilities().missing[0].text)
    load = os.getloadavg()[0]
    asked = [(python, ONEDNN) for python in options.onednn]
    own = [] if options.onednn or options.plain else [sys.executable]
    asked = [*((python, PROGRAM) for python in options.python or own), *asked]
    shape = options.windows, options.seconds
    parts = [
        table(python, f"{program.name}{_framework(python)}", measure(python, program, *shape))
        for python, program in asked
    ]
    parts += [table(python, PLAIN.name, measure_plain(python, *shape)) for python in options.plain]
    where = f"{os.cpu_count()} CPUs, load {load:.1f} when it began and {os.getloadavg()[0]:.1f} when it ended; "
    text = f"{where}{options.windows} windows of {options.seconds:g} s.\n\n" + "\n".join(parts)
    print(text)
    if options.write:
        PAGE.write_text(HEAD + text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
