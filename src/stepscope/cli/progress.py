"""What a command is doing, once it takes more than two seconds: on stderr, so that output can be piped.

On a terminal one line that is drawn again each second and removed at the end; else a line at first, and then one after
each ten seconds, as a log wants it.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

SILENT_S = 2.0
TERMINAL_S = 1.0
LOG_S = 10.0
_CLEAR = "\r\x1b[K"


class Progress:
    """Says what is done, until it is done."""

    def __init__(self, doing: str) -> None:
        """``doing``: ``reading a.pb``."""
        self._doing = doing
        self._began = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stepscope-progress", daemon=True)
        self._terminal = sys.stderr.isatty()
        self._lock = threading.Lock()
        self._drawn = False

    def say(self, doing: str) -> None:
        """From now on this is done."""
        self._doing = doing

    def tell(self, text: str) -> None:
        """Print a line at once."""
        with self._lock:
            self._erase()
            sys.stderr.write(f"stepscope: {text}\n")
            sys.stderr.flush()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        with self._lock:
            self._erase()

    def _run(self) -> None:
        pause = SILENT_S
        while not self._over.wait(pause):
            with self._lock:
                self.draw(time.monotonic() - self._began)
            pause = TERMINAL_S if self._terminal else LOG_S

    def draw(self, seconds: float) -> None:
        """Show what is done, and for how long."""
        text = f"stepscope: {self._doing} · {seconds:.0f} s"
        sys.stderr.write(f"{_CLEAR}{text}" if self._terminal else f"{text}\n")
        sys.stderr.flush()
        self._drawn = True

    def _erase(self) -> None:
        if self._terminal and self._drawn:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
            self._drawn = False
