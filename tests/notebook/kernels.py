"""A real kernel in a folder, which runs cells and tells what a front end would show."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PATIENCE_S = 240.0
Shown = dict[str, str]
"""What one message shows, by its mime type; text that is printed is text/plain."""


class Kernel:
    """One kernel and the client of a front end."""

    def __init__(self, folder: Path) -> None:
        jupyter = pytest.importorskip("jupyter_client")
        pytest.importorskip("ipykernel")
        self.folder = folder
        connection, _ = jupyter.write_connection_file(str(folder / "kernel.json"))
        environment = {**os.environ, "IPYTHONDIR": str(folder / "ipython"), "STEPSCOPE_ALWAYS": "0"}
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", connection]
        self.process = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.DEVNULL)
        self.client = jupyter.BlockingKernelClient(connection_file=connection)
        self.client.load_connection_file()
        self.client.start_channels()
        wait_for(self._ready)

    def _ready(self) -> bool:
        """Whether the kernel answers: on a busy machine one that starts is taken for dead."""
        try:
            self.client.wait_for_ready(timeout=PATIENCE_S)
        except RuntimeError:
            assert self.process.poll() is None
            return False
        return True

    def run(self, code: str) -> tuple[dict[str, object], list[Shown]]:
        """The reply to a cell, and what was shown meanwhile.

        What comes just after a cell has failed the kernel puts back, unrun: it is sent again.
        """
        shown: list[Shown] = []

        def keep(message: dict[str, dict[str, object]]) -> None:
            content = message["content"]
            if isinstance(data := content.get("data"), dict):
                shown.append(data)
            elif "text" in content:
                shown.append({"text/plain": str(content["text"])})
            elif isinstance(frames := content.get("traceback"), list):
                shown.append({"traceback": "\n".join(map(str, frames))})

        reply = self.client.execute_interactive(code, timeout=PATIENCE_S, output_hook=keep)
        return self.run(code) if reply["content"]["status"] == "aborted" else (reply["content"], shown)

    def text(self, code: str) -> str:
        """All text that a cell shows."""
        return "".join(one.get("text/plain", "") for one in self.run(code)[1])

    def begin(self, code: str) -> None:
        """Run a cell without waiting, until it says that it works: it touches the file ``works``."""
        (self.folder / "works").unlink(missing_ok=True)
        self.client.execute(code)
        wait_for((self.folder / "works").exists)

    def ended(self) -> object:
        """How the cell that was begun has ended: the name of its error, None for success."""
        return self.client.get_shell_msg(timeout=PATIENCE_S)["content"].get("ename")

    def sessions(self) -> list[Path]:
        """The sessions in the kernel's folder."""
        return sorted(self.folder.glob("*.stepscope"))


@contextmanager
def kernel(folder: Path) -> Iterator[Kernel]:
    """A kernel that ends with the block."""
    made = Kernel(folder)
    try:
        yield made
    finally:
        made.client.stop_channels()
        if made.process.poll() is None:
            made.process.send_signal(signal.SIGKILL)
        made.process.wait()


def wait_for(ready: object) -> None:
    """Wait until a condition holds."""
    assert callable(ready)
    until = time.monotonic() + PATIENCE_S
    while not ready():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.05)
