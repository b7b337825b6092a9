"""How a process learns that it is to be measured, and the layout of the run directory.

The run directory (on /dev/shm, else a local temporary directory) belongs to one run and is private to its user::

    RUN/config.json          written by the launcher, or by the first process of a job that is always measured
    RUN/job.json             which process the job is, and how it was started
    RUN/status.json          the live status that the sidecar publishes, for ``ps`` and ``top``
    RUN/trouble.jsonl        one line for each process that could not be armed or measured
    RUN/arm/                 first entry of PYTHONPATH: sitecustomize.py, stepscope/ (stub, agent, wire); under run
    RUN/procs/PID-START/     one per measured process (START: its start in clock ticks since boot); a process that
                             called exec and measures again has PID-START-2 and so on
        ring                 the ring, or a symbolic link to it where another file system had the space; it
                             appears under this name when it is complete
        log-0001.jsonl ...   the log
        commands/            what the sidecar asks of the process (``wire.commands``)
    RUN/requests/            what somebody asks of the sidecar (``wire.commands``)
"""

from __future__ import annotations

RUN_VARIABLE = "STEPSCOPE_RUN"
"""Path of the run directory. Set: the process is armed."""

ALWAYS_VARIABLE = "STEPSCOPE_ALWAYS"
"""Set to "0": ``stepscope enable`` does not arm this process."""

RUN_PREFIX = "stepscope-"
"""A run directory is called ``stepscope-UID-TOKEN``."""

CONFIG_NAME = "config.json"
JOB_NAME = "job.json"
ENABLED_NAME = "enabled.json"
"""What ``stepscope enable`` was told, as the first process of a job found it; absent under ``run``."""
STATUS_NAME = "status.json"
TROUBLE_NAME = "trouble.jsonl"
PROCS_NAME = "procs"
ARM_NAME = "arm"
RING_NAME = "ring"

CONFIG_KEYS = ("version", "session", "origin_ns", "ring_dirs", "sample_hz", "slots")
"""version 1 · session: path of the session directory, empty while there is none · origin_ns: CLOCK_MONOTONIC that is
the session's zero · ring_dirs: directories to try for rings, best first · sample_hz: stack samples a second · slots:
ring size. And for whoever sweeps: owner_pid, owner_ticks (the process that made the run directory, its start in clock
ticks since boot), pid_namespace."""

CAPTURES_NAME = "captures"
"""Folder of a session for what was captured."""
RAW_PREFIX = "raw-"
"""A process writes what it captures into ``captures/raw-ID`` of the session; the sidecar takes it from there."""

MAX_TROUBLE_BYTES = 65_536
"""Of ``trouble.jsonl``: a job may start processes without end that all fail alike."""
