"""Commands of stepscope in a process of their own, whose whole tree ends with the request.

A child leads a session, so nothing that it starts gets a terminal or the server's input and output.
"""

from __future__ import annotations

import os
import secrets
import signal
from collections import deque
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import TYPE_CHECKING

import anyio
from anyio.abc import ByteReceiveStream, Process
from msgspec import Struct

from stepscope.native import own_python, process_stat

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

MARK = "STEPSCOPE_REQUEST"
"""Variable of all processes of a request, by which those are found that have left their session."""
GRACE_S = 10.0
"""Time in which a child ends by itself after a signal: what it leaves is then what it leaves after Ctrl-C."""
MOST_OUTPUT = 8 << 20
"""Most bytes of a child's answer."""
LAST_LINES = 5
"""Lines of the child's messages that are kept."""
MOST_LINE = 2_000
POLL_S = 0.1
DRAIN_S = 2.0
"""Time for what a child that has ended has written; a process that it left may hold the pipe open for ever."""


class Done(Struct, frozen=True, kw_only=True):
    """A child that has ended."""

    code: int
    output: bytes
    said: tuple[str, ...]
    """The last lines of its messages: text of the job."""


async def run(words: Sequence[str], folder: str, polite: signal.Signals, heard: Callable[[str], object]) -> Done:
    """Run ``stepscope WORDS`` in a folder. If the request is cancelled, all its processes are gone when this returns.

    Args:
        words: arguments of stepscope.
        folder: working folder; "": that of the server.
        polite: signal that asks it to end.
        heard: gets each line of its messages.

    Raises:
        OSError: it cannot be started.
    """
    mark = secrets.token_hex(8)
    with anyio.CancelScope(shield=True):  # one that is cancelled here would have a process and no name for it
        process = await anyio.open_process(
            own_python.of_command(*words),
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            cwd=folder or None,
            env={**os.environ, MARK: mark},
            start_new_session=True,
        )
    output, last = bytearray(), deque[str](maxlen=LAST_LINES)

    def line(text: str) -> None:
        last.append(text)
        heard(text)

    async def read() -> None:
        async with anyio.create_task_group() as readers:
            readers.start_soon(_gather, process.stdout, output)
            readers.start_soon(_lines, process.stderr, line)

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_last_words, read, process)
            code = await process.wait()
    except BaseException:
        with anyio.CancelScope(shield=True):
            await _end(process, polite, mark)
        raise
    finally:
        with anyio.CancelScope(shield=True):
            await process.aclose()
    return Done(code=code, output=bytes(output), said=tuple(last))


async def _last_words(read: Callable[[], Awaitable[None]], process: Process) -> None:
    """Read until the pipes end, or for a while after the process has."""
    async with anyio.create_task_group() as group:

        async def leave() -> None:
            await process.wait()
            await anyio.sleep(DRAIN_S)
            group.cancel_scope.cancel()

        group.start_soon(leave)
        await read()
        group.cancel_scope.cancel()


async def _end(process: Process, polite: signal.Signals, mark: str) -> None:
    """End a child and all that it has started: politely, then by force."""
    with suppress(ProcessLookupError):
        process.send_signal(polite)
    with anyio.move_on_after(GRACE_S):
        await process.wait()
        await _until_gone(process.pid, mark, 0)
    await _until_gone(process.pid, mark, signal.SIGKILL)


async def _until_gone(leader: int, mark: str, number: int) -> None:
    """Send a signal, 0 for none, to what is left, until nothing is."""
    while True:
        left = _living(leader, mark)
        if not left:
            return
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        await anyio.sleep(POLL_S)


def _living(leader: int, mark: str) -> list[int]:
    """Processes of a request: in the session of its child, or with its mark, wherever they hang."""
    wanted = f"{MARK}={mark}\0".encode()
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            pid = int(folder.name)
            if process_stat.state(pid) == "Z":
                continue
            if os.getsid(pid) == leader or wanted in (folder / "environ").read_bytes():
                found.append(pid)
    return found


async def _gather(stream: ByteReceiveStream | None, into: bytearray) -> None:
    if stream is not None:
        async for part in stream:
            into += part[: max(0, MOST_OUTPUT - len(into))]


async def _lines(stream: ByteReceiveStream | None, heard: Callable[[str], object]) -> None:
    rest = b""
    if stream is not None:
        async for part in stream:
            *whole, rest = (rest + part).split(b"\n")
            rest = rest[-MOST_LINE:]
            for one in whole:
                heard(one[:MOST_LINE].decode("utf-8", "replace"))
