"""Compares a report with what a case knows to be true.

A case is a folder with ``case.toml`` and either ``slow`` and ``fixed`` or ``clean``, each a ``.py`` file, or a ``.sh``
file if the story begins outside Python. The fields of ``case.toml`` are described in bench/cases/README.md.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import _memory_limit

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Json = Mapping[str, Any]
"""An object of a report or of case.toml."""
LINE_SLACK = 3
COST_SLACK = 0.25
MIN_TRUTH = 0.05
"""Share of time that a fix must save for its cost to be judged: below it (for memory, say) timing is random."""
CHECKS = ("top1", "any", "cause", "stage", "exposed", "pipeline", "line", "cost", "gone")
"""Checks of a slow program's report, in the order of the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One folder of bench/cases."""

    folder: Path
    known: Json

    @property
    def name(self) -> str:
        """Name of its folder."""
        return self.folder.name

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong with its program."""
        return not self.known["finding"]

    def program(self, kind: str) -> Path:
        """The file of ``slow``, ``fixed`` or ``clean``."""
        script = self.folder / f"{kind}.sh"
        return script if script.exists() else self.folder / f"{kind}.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One program under stepscope. If ``report`` is None, ``error`` says why."""

    report: Json | None
    error: str
    seconds: float
    output: str

    @property
    def findings(self) -> list[Json]:
        """Findings above info, in the report's order. A question claims nothing: it counts as silence."""
        every = (self.report or {}).get("findings", [])
        return [finding for finding in every if finding["severity"] not in {"info", "ask"}]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Result of one case. ``checks`` maps to None if a check does not apply."""

    case: str
    clean: bool
    error: str = ""
    checks: Mapping[str, bool | None] = field(default_factory=dict)
    titles: Sequence[str] = ()
    wrong: int = 0
    """Number of findings above info that name something that is not wrong."""
    cost: float | None = None
    truth: float | None = None


def load(root: Path, only: Sequence[str] = ()) -> list[Case]:
    """Every case below ``root`` whose name contains one of ``only``."""
    folders = sorted(path.parent for path in root.glob("**/case.toml"))
    return [
        Case(folder=folder, known=tomllib.loads((folder / "case.toml").read_text()))
        for folder in folders
        if not only or any(part in folder.name for part in only)
    ]


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a program that ran too long, and its children."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        time.sleep(1)
    process.wait()


def execute(command: Sequence[str], folder: Path, *, timeout: float, env: Mapping[str, str]) -> tuple[int | None, str]:
    """Run a command in its own process group. Returns exit code (None: too slow) and the end of its output."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(env),
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            code: int | None = process.wait(timeout)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _stop(process)
        log.seek(0)
        return code, log.read().decode(errors="replace")[-4000:]


def command_of(program: Path, python: str, prefix: Sequence[str], cpus: Sequence[str] = ()) -> list[str]:
    """The command that starts a program; ``prefix`` is ``stepscope run --report-json FILE`` or nothing, ``cpus`` the
    words before it when its truth was measured (``taskset -c 0``).
    """
    job = [*cpus, *(["sh", program.name] if program.suffix == ".sh" else [python, program.name])]
    return [*prefix, "--", *job] if prefix else job


def environment(python: str) -> dict[str, str]:
    """The environment of a program; a shell script of a case starts ``$PYTHON``."""
    return {**os.environ, "PYTHON": python, "TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2")}


def measure(program: Path, python: str, timeout: float) -> float:
    """Seconds per sample that a program itself prints, run without stepscope.

    Raises:
        RuntimeError: it failed, or printed nothing.
    """
    code, output = execute(command_of(program, python, ()), program.parent, timeout=timeout, env=environment(python))
    if code != 0:
        raise RuntimeError(f"{program}: exit code {code}: {output[-300:]}")
    stated = json.loads(output.strip().splitlines()[-1])
    return float(stated["seconds"]) / float(stated["samples"])


def run(case: Case, kind: str, stepscope: Sequence[str], python: str, timeout: float) -> Ran:
    """Run one program of a case under stepscope, in a copy that contains neither the answer nor the other version.

    A case with a limit of memory runs in a control group that has it; its slow program may die there. One whose truth
    was measured on some CPUs runs on these, as its share of a step may be another on more. One that preloads a library
    does not run without it: it would not be slow.
    """
    for library in case.known.get("needs_libraries", ()):
        said = subprocess.run(
            ["true"], check=False, env={**os.environ, "LD_PRELOAD": library}, capture_output=True, text=True
        )
        if said.stderr:
            return Ran(
                report=None, error=f"{said.stderr.strip()}; next: scripts/system-deps.sh --all", seconds=0.0, output=""
            )
    others = {f"{k}{s}" for k in ("slow", "fixed", "clean") for s in (".py", ".sh") if k != kind}
    with tempfile.TemporaryDirectory(prefix="stepscope-case-") as scratch:
        folder = Path(scratch) / "case"
        shutil.copytree(case.folder, folder, ignore=shutil.ignore_patterns("case.toml", "__pycache__", *others))
        report = Path(scratch) / "report.json"
        cpus = case.known.get("measured_cpus", "").split()
        command = command_of(case.program(kind), python, [*stepscope, "--report-json", str(report)], cpus)
        limit = case.known.get("memory_limit_mib", 0)
        began = time.monotonic()
        with _memory_limit.group(limit) if limit else contextlib.nullcontext() as group:
            entered = ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh", *command] if group else command
            code, output = execute(entered, folder, timeout=timeout, env=environment(python))
        seconds = time.monotonic() - began
        dies = bool(limit) and kind == "slow" and code is not None
        if code != 0 and not dies:
            reason = f"longer than {timeout:g} s" if code is None else f"exit code {code}"
            return Ran(report=None, error=reason, seconds=seconds, output=output)
        try:
            data = json.loads(report.read_text())
        except (OSError, ValueError) as error:
            return Ran(report=None, error=f"no report: {error}", seconds=seconds, output=output)
        return Ran(report=data, error="", seconds=seconds, output=output)


def _plain(text: object) -> str:
    return " ".join(str(text).lower().replace("_", " ").replace("-", " ").split())


def _says(words: Sequence[str], text: str) -> bool:
    return any(_plain(word) in text for word in words)


def right(finding: Json, known: Json) -> bool:
    """Whether a finding names the true cause, and none of the wrong answers in its title."""
    remedies = " ".join(remedy["text"] for remedy in finding["remedies"])
    said = _plain(f"{finding['name']} {finding['title']} {remedies}")
    return _says(known["expect_keywords"], said) and not _says(known["wrong_answers"], _plain(finding["title"]))


def meets_place(finding: Json, known: Json) -> bool | None:
    """Whether a place of the finding meets a culprit's lines; None if the culprit has none."""
    if not known["where"]:
        return None
    for place in finding["where"]:
        low, high = place["line"], place.get("end_line") or place["line"]
        for want in known["where"]:
            same = Path(place["file"]).name == want["file"]
            if same and low <= want["end_line"] + LINE_SLACK and high >= want["line"] - LINE_SLACK:
                return True
    return False


def judge(case: Case, slow: Ran, fixed: Ran) -> Verdict:
    """Judge a pair."""
    known = case.known
    truth = 1 - 1 / known["measured"]["ratio"]
    found = slow.findings
    titles = [finding["title"] for finding in found[:3]]
    error = "; ".join(f"{kind}: {ran.error}" for kind, ran in (("slow", slow), ("fixed", fixed)) if ran.error)
    hits = [finding for finding in found if right(finding, known)]
    checks: dict[str, bool | None] = dict.fromkeys(CHECKS, False)
    wrong = len(found) - len(hits)
    cost = None
    if hits:
        hit = hits[0]
        cost = hit["cost"]["ratio"]
        gone = fixed.report is not None and all(other["code"] != hit["code"] for other in fixed.findings)
        wrong += not gone
        checks = {
            "top1": found[0] is hit,
            "any": True,
            "cause": hit["cause"] in (known["cause"], *known.get("also_causes", ())),
            "stage": hit["introduced_stage"] == known["introduced_stage"],
            "exposed": hit["exposed_stage"] == known["exposed_stage"],
            "pipeline": hit["pipeline_stage"] == known["pipeline_stage"],
            "line": meets_place(hit, known),
            "cost": abs(cost - truth) <= COST_SLACK * truth if truth >= MIN_TRUTH else None,
            "gone": gone,
        }
    return Verdict(
        case=case.name, clean=False, error=error, checks=checks, titles=titles, wrong=wrong, cost=cost, truth=truth
    )


def judge_clean(case: Case, ran: Ran) -> Verdict:
    """Judge a program with which nothing is wrong: every finding above info is a false alarm."""
    titles = [finding["title"] for finding in ran.findings]
    return Verdict(case=case.name, clean=True, error=ran.error, titles=titles, wrong=len(titles))


def shares(verdicts: Sequence[Verdict]) -> dict[str, float]:
    """Share of the pairs for each check, recall (the cause is found) and precision (findings are true)."""
    pairs = [verdict for verdict in verdicts if not verdict.clean]
    result: dict[str, float] = {}
    for check in CHECKS:
        known = [verdict.checks[check] for verdict in pairs if verdict.checks[check] is not None]
        result[check] = sum(map(bool, known)) / len(known) if known else 0.0
    hits = sum(bool(verdict.checks["any"]) for verdict in pairs)
    said = hits + sum(verdict.wrong for verdict in verdicts)
    result["recall"] = result["any"]
    result["precision"] = hits / said if said else 1.0
    return result
