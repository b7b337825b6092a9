"""How a process learns that it is to be measured, and the layout of the run directory.

The run directory (on /dev/shm, else a local temporary directory) belongs to one run and is private to its user::

    RUN/config.json          written by the launcher, read by every armed process
    RUN/arm/                 first entry of PYTHONPATH: sitecustomize.py, stepscope/ (stub, agent, wire)
    RUN/procs/PID-START/     one per measured process (START: its start in clock ticks since boot); a process that
                             called exec and measures again has PID-START-2 and so on
        ring                 the ring, or a symbolic link to it where another file system had the space; it
                             appears under this name when it is complete
        log-0001.jsonl ...   the log
    RUN/commands/            from the collector to the agents (later)
"""

from __future__ import annotations

RUN_VARIABLE = "STEPSCOPE_RUN"
"""Path of the run directory. Set: the process is armed."""

CONFIG_NAME = "config.json"
PROCS_NAME = "procs"
ARM_NAME = "arm"
RING_NAME = "ring"

CONFIG_KEYS = ("version", "session", "origin_ns", "ring_dirs", "sample_hz", "slots")
"""version 1 · session: path of the session directory · origin_ns: CLOCK_MONOTONIC that is the session's zero ·
ring_dirs: directories to try for rings, best first · sample_hz: stack samples a second · slots: ring size."""
