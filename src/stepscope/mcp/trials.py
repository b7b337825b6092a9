"""What runs a command of the user's: a new recording, and trials. Each is a child (``children``)."""

from __future__ import annotations

import shutil
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import msgspec
from msgspec import Struct

from stepscope.mcp import answers, children
from stepscope.mcp.fitting import encode
from stepscope.mcp.refusals import RunFailedError
from stepscope.tables import layout
from stepscope.tables.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from stepscope.mcp.handles import Handles
    from stepscope.mcp.tools import Diagnose, Prove

    Tell = Callable[[float, float | None, str], Awaitable[None]]

EVERY_S = 1.0
"""Time between two lines of progress."""
WHATIF = ".whatif"
HEAD_BYTES = 100
"""Room for what is said of a run before its answer."""


class Heard(Struct):
    """What is known of a child that runs."""

    lines: int = 0

    def __call__(self, line: str) -> None:
        """Count a line of its messages."""
        del line
        self.lines += 1


async def diagnose(handles: Handles, asked: Diagnose, tell: Tell) -> bytes:
    """Record a new run of a command, then the answer for its session.

    Raises:
        RunFailedError: there is no session of it.
        UsageError: it is no command.
    """
    session = _new_path(asked.folder, "diagnose", layout.SUFFIX)
    words = ["run", "-q", "--session", str(session), "--", *_command(asked.command, asked.folder)]
    done = await _run(words, asked.folder, session, signal.SIGTERM, tell)
    if not layout.is_session(session):
        raise RunFailedError(" / ".join(done.said))
    named = msgspec.structs.replace(asked, session=str(session), max_bytes=asked.max_bytes - HEAD_BYTES)
    shown = await anyio.to_thread.run_sync(answers.diagnose, handles, named)
    said = msgspec.json.decode(shown, type=dict[str, object])
    return encode({"recorded": session.name, "exit_code": done.code, **said})


async def prove(asked: Prove, tell: Tell) -> bytes:
    """Run a command unchanged and changed, in turn.

    Raises:
        RunFailedError: nothing was measured.
        UsageError: it is no command, or what is asked for cannot be.
    """
    from stepscope.model.report.whatif import WhatIfReport

    folder = _new_path(asked.folder, "prove", WHATIF)
    words = ["whatif", "--json", "--folder", str(folder)]
    words += [f"--try={trial}" for trial in asked.trials]
    words += [f"--against={asked.against}"] if asked.against else []
    words += [f"--time={asked.seconds}s"] if asked.seconds else []
    words += [f"--rounds={asked.rounds}"] if asked.rounds else []
    done = await _run([*words, "--", *_command(asked.command, asked.folder)], asked.folder, folder, signal.SIGINT, tell)
    if done.code:
        raise RunFailedError(" / ".join(done.said))
    try:
        report = msgspec.json.decode(done.output, type=WhatIfReport)
    except msgspec.DecodeError:
        return encode({"results": [], "said": "nothing to try: no finding and no part of the step suggests a change"})
    return answers.tried(report, asked)


async def _run(words: Sequence[str], folder: str, made: Path, polite: signal.Signals, tell: Tell) -> children.Done:
    """Run a child; what it makes is removed if the request is cancelled."""
    heard = Heard()
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_progress, heard, tell)
            done = await children.run(words, folder, polite, heard)
            group.cancel_scope.cancel()
    except OSError as error:
        raise UsageError(f"{folder or 'the folder'}: {error.strerror}") from error
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return done


async def _progress(heard: Heard, tell: Tell) -> None:
    """Say how long it has run, in words without any of the job's."""
    began = time.monotonic()
    while True:
        await anyio.sleep(EVERY_S)
        passed = time.monotonic() - began
        await tell(passed, None, f"running for {passed:.0f} s, {heard.lines} lines of messages")


def _command(words: Sequence[str], folder: str) -> tuple[str, ...]:
    """The command line; a script of Python alone is run by Python.

    Raises:
        UsageError: it is none.
    """
    from stepscope.use_cases import record

    if not words or words[0].startswith("-"):
        raise UsageError("command: expected a program and its arguments")
    script = words[0].endswith(".py") and (Path(folder) / words[0]).is_file()
    return (record.python_of_job(), *words) if script else tuple(words)


def _new_path(folder: str, name: str, suffix: str) -> Path:
    """A name that nothing has yet, without a word of the job's."""
    base = Path(folder).resolve()
    stem = f"{name}-{time.strftime('%m%d-%H%M%S')}"
    names = (f"{stem}{f'-{number}' if number else ''}{suffix}" for number in range(1000))
    return next(path for path in (base / one for one in names) if not path.exists())
