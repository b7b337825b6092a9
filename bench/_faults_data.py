"""What ``bench-faults`` hands to a run, gets from it, and keeps."""

from __future__ import annotations

import msgspec


class Spec(msgspec.Struct, frozen=True, kw_only=True):
    """A run: fields of a ``Fault``, and what it runs."""

    folder: str
    launcher: list[str]
    """In front of the job; empty without stepscope."""
    command: list[str]
    """The job's; the program is its last word."""
    keep: list[str]
    """Folders in /tmp that stay: interpreters."""
    around: list[str]
    before: list[str]
    job: list[str]
    inside: str
    moment: str
    environment: dict[str, str]


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What a session says."""

    said: list[str] = msgspec.field(default_factory=list)
    """Diagnostics, findings, and how the job ended."""
    processes: int = 0
    problem: str = ""
    """Why there is no report."""


class About(msgspec.Struct, frozen=True, array_like=True):
    """A file of the program's."""

    mode: int
    uid: int
    gid: int
    size: int
    digest: str


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """A run, when it is over."""

    code: int | None
    """Exit code; None: it did not end."""
    happened: bool
    """Whether the fault from outside has come."""
    reached: bool = False
    """Whether the program got to its middle, where faults come."""
    stdout: str
    stderr: str
    files: dict[str, About]
    left: list[str]
    mounts: list[str]
    sessions: list[Said]
    cpu_s: float


class Plain(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="plain"):
    """A fault met without stepscope."""

    fault: str
    program: str
    unstable: list[str]
    """Differences between two such runs: then the cell is of no use."""
    row: Ran


class Run(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="run"):
    """A fault met under stepscope, compared."""

    fault: str
    program: str
    round: int
    no_use: list[str] = msgspec.field(default_factory=list)
    """Why the cell is of no use."""
    differences: list[str] = msgspec.field(default_factory=list)
    silent: str = ""
    """Why the report does not say what happened."""
    code: int | None = None
    said: list[str] = msgspec.field(default_factory=list)
    cpu_s: float = 0.0
