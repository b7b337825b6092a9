"""The variables that tell a process to be measured, and the layout of the run directory.

The run directory (on /dev/shm, else a local temporary directory) belongs to one run and is private to its user::

    RUN/config.json          written by the launcher, or by the first process of a job that is always measured
    RUN/job.json             which process the job is, and how it was started
    RUN/status.json          the live status that the sidecar publishes, for ``ps`` and ``top``
    RUN/first-look           made by the process that takes the first look (``agent.capture.first_look``)
    RUN/signalled            made by the launcher: a signal that ends jobs was passed on
    RUN/gave-way.json        made when the collector has given its memory back to the job (``launcher``)
    RUN/peers.jsonl          peers that processes of a trial want to reach (``wire.peers``); absent if it is none
    RUN/clocks.json          hosts to compare clocks with (``clocks.settings``); absent if there are none
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

import os

RUN_VARIABLE = "STEPSCOPE_RUN"
"""Path of the run directory. If set, the process is armed."""

ALWAYS_VARIABLE = "STEPSCOPE_ALWAYS"
"""Variable that, set to "0", keeps ``stepscope enable`` from arming this process."""

RUN_PREFIX = "stepscope-"
"""Prefix of a run directory's name, ``stepscope-UID-TOKEN``."""

CONFIG_NAME = "config.json"
JOB_NAME = "job.json"
ENABLED_NAME = "enabled.json"
"""Settings of ``stepscope enable``, as found by the first process of a job; absent under ``run``."""
STATUS_NAME = "status.json"
LOOKED_NAME = "first-look"
"""File that the process makes which takes the first look; the others then take none."""
SIGNALLED_NAME = "signalled"
"""File that the launcher makes when it passes on a signal that ends jobs."""
GAVE_WAY_NAME = "gave-way.json"
"""File that is there when no collector reads any more what the job's processes record."""
TROUBLE_NAME = "trouble.jsonl"
PEERS_NAME = "peers.jsonl"
CLOCKS_NAME = "clocks.json"
PROCS_NAME = "procs"
ARM_NAME = "arm"
RING_NAME = "ring"

CONFIG_KEYS = ("version", "session", "origin_ns", "ring_dirs", "sample_hz", "slots", "first_look_ns", "trial")
"""Keys of the configuration. version 1 · session: path of the session directory, empty while there is none · origin_ns:
CLOCK_MONOTONIC at the session's zero · ring_dirs: directories to try for rings, best first · sample_hz: stack samples
per second · slots: ring size · first_look_ns: cost allowed for the first look, absent where none is armed ·
trial: see ``wire.trials``, absent where the run is none, else duty_cycle is false: no gaps. And for the sweeper:
owner_pid, owner_ticks (the process that made the run directory, its start in clock ticks since boot), pid_namespace."""

UNENDED_VARIABLE = "STEPSCOPE_UNENDED_S"
"""Internal, for tests: seconds instead of ``UNENDED_S``."""
UNENDED_S = 30.0
"""Time after the end of a program, without any record of work, after which its process counts as not ended."""


def unended_ns() -> int:
    """``UNENDED_S`` in nanoseconds."""
    try:
        return int(float(os.environ.get(UNENDED_VARIABLE) or UNENDED_S) * 1e9)
    except ValueError:
        return int(UNENDED_S * 1e9)


CAPTURES_NAME = "captures"
"""Folder of a session's captures."""
RAW_PREFIX = "raw-"
"""Prefix of the folder ``captures/raw-ID`` of the session into which a process writes a capture; the sidecar takes it
from there."""

MAX_TROUBLE_BYTES = 65_536
"""Maximum size of ``trouble.jsonl``: a job may start endless processes that all fail alike."""
