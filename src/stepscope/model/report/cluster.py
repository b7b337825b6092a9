"""The members of a job in its report: who they are, how fast, and for whom they wait."""

from __future__ import annotations

from typing import Literal

from stepscope.model.report.op_summary import TracedCommunication
from stepscope.tables.structs import Struct

PairedBy = Literal["clock", "rhythm", "count", "number", "none"]


class Gain(Struct, frozen=True, kw_only=True):
    """By how much the period falls if a member alone did only what the others do, with its interval of 95 %."""

    ratio: float
    low: float
    high: float


class FirstFinding(Struct, frozen=True, kw_only=True):
    """The first finding above info of a member's own report."""

    code: str
    title: str
    severity: str
    ratio: float


class MemberRow(Struct, frozen=True, kw_only=True):
    """One member. Times are of the mean common step; null where they are not known."""

    name: str
    """Name within the job: "worker 1", "ps 0", "rank 3"."""
    rank: int | None = None
    """Number among those that train; null: it does not train."""
    host: str = ""
    pid: int = 0
    folder: str = ""
    """Folder of its session below ``members/``; "" if it is a process of this session."""
    file: str = ""
    """Imported file that it is known by; "" if it was measured."""
    steps: int = 0
    serves: bool = False
    """Flag: it only serves what others ask for: a parameter server, a worker of a coordinator."""
    step_ns: int | None = None
    """Mean steady step."""
    samples_per_s: float | None = None
    own_ns: int | None = None
    """Time between the calls of its steps: what it does alone."""
    waits_ns: int | None = None
    """Time that it waits for the slowest."""
    blame_ns: int | None = None
    """Own time beyond the median of the others, in the median step."""
    last_ratio: float | None = None
    """Share of the steps in which its own time was the longest."""
    gain: Gain | None = None
    paired_by: PairedBy = "none"
    """What its steps were paired by with those of the others: see ``derive.cluster.pairing``; of imported files by the
    program's numbers, or by when they end.
    """
    synchronous: bool = False
    """Flag: it leaves its calls together with the others."""
    incarnations: int = 1
    """Number of processes that were this task, one after the other: a worker that was started again."""
    folders: tuple[str, ...] = ()
    """Folders of their sessions below ``members/``, in order; empty if there was one."""
    first: FirstFinding | None = None
    """First finding above info of its report; null: none, or it has no separate report."""


class JointTask(Struct, frozen=True, kw_only=True):
    """A task in a joint capture. Times are of the mean of the steps that all have in common."""

    name: str
    traced: int = 0
    """Number of whole steps that it traced."""
    step_ns: int | None = None
    communication: TracedCommunication | None = None
    """Communication with the other tasks; null: its trace shows none, or not these steps."""
    apart: bool = False
    """Flag: its steps do not end with those of the others, so only the time is the same."""


class JointCapture(Struct, frozen=True, kw_only=True):
    """An op trace of all tasks at the same time."""

    id: str
    steps: int = 0
    """Number of steps that all have in common; 0: only the time is the same."""
    first_step: int | None = None
    """Number of the first of them since the job's first step, from 0; null: none is the same."""
    tasks: tuple[JointTask, ...] = ()
    missed: tuple[str, ...] = ()
    """Tasks that are not in it, each with the reason."""


class Cluster(Struct, frozen=True, kw_only=True):
    """The members of one job."""

    launcher: str
    job_id: str = ""
    tasks: int
    """Number of all tasks of the job, without those that the session lacks too."""
    missing: tuple[str, ...] = ()
    """Tasks of which the session has nothing."""
    members: tuple[MemberRow, ...] = ()
    """The members, by rank; those that do not train last."""
    common_steps: int = 0
    """Number of steps that were compared; 0: members do not wait for each other, or it is not known."""
    period_ns: int | None = None
    """From step to step of all; null without common steps."""
    waits_ns: int | None = None
    """Time that the mean member waits for the slowest."""
    exchange_ns: int | None = None
    """Time of the exchange itself, without waits: transfer and the collective. Without op traces it holds what the same
    call computes."""
    exchange_usual_ns: int | None = None
    """The same in the fastest tenth of the steps; None where op traces give the exchange."""
    global_batch: float | None = None
    """Samples that all members together take in a step."""
    samples_per_s: float | None = None
    """Samples per second of all members together."""
    text: str = ""
    """Why nothing is said of waits; "" if something is."""
    captures: tuple[JointCapture, ...] = ()
    """Op traces that the tasks took at the same time."""
