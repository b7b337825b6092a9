"""The format of a part: what one ended session leaves behind for questions about many. docs/fleet-format.md shows this.

A part is one Parquet file of a few columns, in which ``kind`` says what a row is. Few columns, because a question about
thousands of parts spends its time on their footers, which grow with each column (decision 0121).
"""

from __future__ import annotations

from typing import Literal, get_args

import pyarrow as pa
from msgspec import Struct

VERSION = 2
"""Version of the format. A later one adds columns, kinds and names, and changes none, so that any reader reads all."""

Kind = Literal[
    "about", "amount", "version", "component", "stage", "ledger", "finding", "op", "line", "stack", "capture", "source"
]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Column(Struct, frozen=True, kw_only=True):
    """A column of every part."""

    name: str
    type: pa.DataType
    text: str
    since: int = 1
    """Version in which it came."""


def _words(name: str, text: str) -> Column:
    return Column(name=name, type=pa.string(), text=text)


def _whole(name: str, text: str) -> Column:
    return Column(name=name, type=pa.int64(), text=text)


def _share(name: str, text: str) -> Column:
    return Column(name=name, type=pa.float64(), text=text)


COLUMNS = (
    _words("session", "id of the session, the same in all rows of a part"),
    _words("kind", "what the row is, see below"),
    _words("name", "what it is about: a code, a component, an event, a package ..."),
    _words("text", 'value or further words; "" where there are none, as in every column of text'),
    _words("detail", "further words"),
    _words("file", "source file: relative to the job's working directory, or to the folder of installed packages"),
    _whole("line", "its line, from 1; 0: none"),
    _words("function", "the function there"),
    _whole("time_ns", "time of the whole run that the row stands for, in ns; null: not known"),
    _whole("self_ns", "the part of it that no other row of its kind has"),
    _whole("cpu_ns", "CPU time of the whole run that the row stands for, in ns; null: not known"),
    _whole("number", "a count or an amount, in the unit that its kind or name says"),
    _share("ratio", "a share from 0 to 1, as the report has it; never NaN"),
    _share("low", "the lower end of its interval"),
    _share("high", "the upper end of its interval"),
)
ARROW = pa.schema([pa.field(one.name, one.type, nullable=one.type != pa.string()) for one in COLUMNS])

KIND_TEXTS: dict[Kind, str] = {
    "about": "a word about the job: `name` says which, `text` is its value",
    "amount": "a number about the job: `name` says which and in which unit, `number` is its value",
    "version": "software that the job used: `name` the package, `text` its version",
    "component": "a component of the step: `name`, its pipeline stage in `text`, `time_ns` over all steps, `ratio` of "
    "the step, place of its largest contributor",
    "stage": "one of the eight pipeline stages: `name`, `ratio` of the step",
    "ledger": "a part of the job's wall time; all of a session add up to it: the phase in `name`, the component of the "
    "step in `text`, what settles it in `detail`",
    "finding": "a finding above info: its code in `name`, its detector's name in `text`, its severity in `detail`, "
    "its first place; `time_ns` is what its remedy is predicted to save over the run, `self_ns` what on top of the "
    "findings before it, `ratio`, `low` and `high` the share of the steady time",
    "op": "ops of one type at one line: the type in `name`, the device in `text`, `time_ns` over all steps, `ratio` of "
    "all op time, `number` of runs seen",
    "line": "a line of Python on sampled stacks; `detail` is own (the user's code) or library. `time_ns` is thread "
    "time with that of the functions it calls, `self_ns` without, `cpu_ns` CPU time by native stacks; since version 2, "
    "where none were taken, by the CPU clock of the main thread; `number` of samples, `ratio` of the steady steps for "
    "the costliest lines",
    "stack": "one distinct stack: the event in `name`, root to leaf in `text` with `;` between frames, `time_ns` its "
    "weight, `number` of samples. Of one session and event all weights add up to the job's CPU time (cpu) or to its "
    "sampled thread time (python, off-cpu): they may be summed over sessions",
    "capture": "a capture: its kind in `name`, the way it was taken in `text`, `time_ns` what it cost the job",
    "source": "only with `--fleet-sources`: a line of the user's code that another row names, in `text`",
}

ABOUT: dict[str, str] = {
    "user": "who ran it",
    "team": "STEPSCOPE_TEAM, else the account of the SLURM job, else the user's group if that is not the user's own",
    "project": "the repository's folder, else the working directory's",
    "commit": "the repository's commit when the job began",
    "program": "the script, module (`-m NAME`) or program, without folder and arguments",
    "command": "only with `--fleet-sources`: the command line, its secrets masked",
    "mode": "run, enable, attach, cell, import or merge",
    "model": "the model's file, where one is known, else what the steps are of: Keras fit, tf.function train_step ...",
    "framework": "the frameworks with their versions",
    "host": "the host, or how many they were",
    "cpu": "the processor",
    "device": "the first GPU on which the job held memory, else the first of the host, by the name that NVML gives it",
    "scheduler_job": "the id that all members of the job share",
    "end": "how the job ended: code, memory, clean, outside or unknown, as `session.end` of the report",
    "restarts": "the session that this one is the next attempt of",
    "started": "the day on which it began (UTC), YYYY-MM-DD",
}
AMOUNTS: dict[str, str] = {
    "started_unix_s": "when the job began, seconds since 1970",
    "wall_ns": "wall time of the job",
    "cpu_ns": "CPU time of the measured processes, as last sampled; of a cell, and of what was attached to, since the "
    "first sample",
    "device_ns": "wall time times devices: how long they were held",
    "sampled_cpu_ns": "CPU time that the samples stand for on which the `cpu_ns` of lines rests (since version 2)",
    "saved_ns": "end of the last save of a model or checkpoint, in ns since the job began; 0: there was none; absent: "
    "saves are not recorded, as of PyTorch (since version 2)",
    "devices": "GPUs on which the job held memory; all of the host where NVML does not say which process holds what",
    "cpus": "CPUs of the host",
    "hosts": "hosts of the job",
    "processes": "measured processes",
    "steps": "steps of the main maker",
    "step_ns": "mean step",
    "step_p50_ns": "median step",
    "step_p95_ns": "95th percentile of the steps",
    "milli_samples": "samples of 1,000 seconds at the steady rate",
    "unexplained_ns": "wall time that no finding explains",
    "memory_peak_bytes": "most memory of all processes together",
    "device_memory_peak_bytes": "most device memory of the job, by NVML",
    "memory_limit_bytes": "the tightest limit of memory",
    "exit_code": "the exit code, negative for a signal; absent: not seen",
    "overhead_ppm": "cost of measuring, in millionths of the step; with low and high in `ratio`'s interval",
    "captures_ppm": "cost of all captures, in millionths of the wall time",
    "lost_records": "records that were overwritten before they were read",
}
