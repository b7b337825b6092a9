"""The server, driven by a client of the SDK over standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

import stepscope
from stepscope.mcp import refusals, tools

from .hostile import Foreign
from .sessions import starving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

mcp = pytest.importorskip("mcp", reason="the SDK is not installed: pip install mcp")

SOURCE = Path(stepscope.__file__).resolve().parent.parent
ENDLESS = "import time, stepscope\nwhile True:\n    stepscope.step()\n    time.sleep(0.02)\n"
SHORT = "import time, stepscope\nfor _ in range(40):\n    stepscope.step()\n    time.sleep(0.01)\nraise SystemExit(3)\n"
PATIENCE_S = 60.0


@asynccontextmanager
async def client(folder: Path, *options: str) -> AsyncIterator[Foreign]:
    """A client of a new server that works in ``folder``."""
    environment = {"PYTHONPATH": str(SOURCE), "PATH": os.environ["PATH"], "XDG_CACHE_HOME": str(folder / "cache")}
    server = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "stepscope", "mcp", *options], cwd=folder, env=environment
    )
    async with mcp.Client(mcp.stdio_client(server)) as found:
        yield found


async def _ask(asked: Foreign, tool: str, **arguments: object) -> tuple[bool, Foreign]:
    """Whether it is an error, and what the answer says."""
    result = await asked.call_tool(tool, arguments)
    (content,) = result.content
    return result.is_error, json.loads(content.text)


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sessions and two programs."""
    folder = tmp_path_factory.mktemp("agent")
    starving(folder / "slow.stepscope")
    starving(folder / "fast.stepscope", wait_ms=2)
    (folder / "endless_job.py").write_text(ENDLESS)
    (folder / "short_job.py").write_text(SHORT)
    return folder


def test_a_client_that_may_read_and_one_that_may_run(folder: Path) -> None:
    """Two servers at once: all tools answer, errors are answers, and only the one with --allow-run runs anything.

    A trial that is cancelled, and a run whose client goes, leave no process, no session and no folder.
    """

    async def both() -> None:
        async with anyio.create_task_group() as group:
            async with client(folder) as reader, client(folder, "--allow-run") as runner:
                await asyncio.gather(_read(reader), _run(runner, folder))
                group.start_soon(_lose, runner)
                await _until(lambda: _runs("endless_job.py"))
            await _until(lambda: not _jobs())

    asyncio.run(both())
    assert sorted(path.name for path in folder.glob("*-*")) == []


async def _read(asked: Foreign) -> None:
    listed = (await asked.list_tools()).tools
    assert [tool.name for tool in listed] == [tool.name for tool in tools.TOOLS]
    for tool in ("diagnose", "prove"):
        assert await _ask(asked, tool, command=["endless_job.py"]) == (True, {"error": refusals.NOT_ALLOWED})
    _, diagnosed = await _ask(asked, "diagnose", session="slow.stepscope")
    assert diagnosed["findings"]
    _, looked = await _ask(asked, "look", what="source", session=diagnosed["session"], file="train.py")
    assert looked["untrusted_lines"][1] == "rows = range(320)"
    _, proved = await _ask(asked, "prove", before=["slow.stepscope"], after=["fast.stepscope"])
    assert proved["main"]["ratio"] > 0
    _, checked = await _ask(asked, "check", paths=["endless_job.py"])
    assert checked["files"] == 1
    failed, said = await _ask(asked, "look", what="source", session="none.stepscope")
    assert (failed, said["error"]) == (True, refusals.SAID["SessionError"])
    failed, said = await _ask(asked, "look", what="nothing")
    assert (failed, said["error"]) == (True, refusals.ARGUMENTS)


async def _run(asked: Foreign, folder: Path) -> None:
    failed, said = await _ask(asked, "diagnose", command=["short_job.py"])
    assert (failed, said["exit_code"], said["step"]["count"]) == (False, 3, 39)  # between 40 marks
    shutil.rmtree(folder / said["recorded"])
    heard: list[str] = []

    async def progress(passed: float, total: float | None, message: str | None) -> None:
        del passed, total
        heard.append(message or "")
        if _runs("endless_job.py"):
            scope.cancel()

    with anyio.CancelScope() as scope:
        await asked.call_tool("prove", {"command": ["endless_job.py"]}, progress_callback=progress)
    assert heard
    assert all("endless" not in line for line in heard)
    await _until(lambda: not _jobs())


async def _lose(asked: Foreign) -> None:
    """A request whose client goes before there is an answer."""
    with suppress(mcp.MCPError):
        await asked.call_tool("diagnose", {"command": ["endless_job.py"]})


def _jobs() -> list[list[str]]:
    """Command lines of processes that were started for the programs of these tests."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_bytes().decode(errors="replace").split("\0")
            if any(word.endswith("_job.py") or "diagnose-" in word or "prove-" in word for word in words):
                found.append(words)
    return found


def _runs(program: str) -> bool:
    """Whether the program itself runs."""
    return any(program in words[1] for words in _jobs())


async def _until(done: Callable[[], bool]) -> None:
    with anyio.fail_after(PATIENCE_S):
        while True:
            if done():
                return
            await asyncio.sleep(0.1)


def test_a_signal_ends_the_server(folder: Path) -> None:
    """At once, though it waits for the client's next line."""
    server = subprocess.Popen(
        [sys.executable, "-m", "stepscope", "mcp"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    server.stdin.flush()
    assert server.stdout.readline()
    server.terminate()
    server.communicate(timeout=PATIENCE_S)
    assert server.returncode == 128 + 15
