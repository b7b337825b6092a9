"""The log of this process: lines, interned names, ids, diagnostics."""

from __future__ import annotations

import itertools
import time
from collections import deque

from stepscope.agent.core import process
from stepscope.wire.log import LogWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import Optional

_MAX_DIAGNOSTICS = 200
_MAX_NAMES = 20_000
"""Names kept at most (about 10 MB): a job may generate names or functions without end."""
_OTHERS = ("others",)
_KEPT = frozenset(("name", "framework", "probe"))
"""Types of lines that a forked child's log repeats, because their ids stay in use."""


class AgentLog:
    """Log of one process: all that it reports apart from records."""

    def __init__(self, run: str, wake: Callable[[], object]) -> None:
        """``run``: the run directory; ``wake``: makes the log and the ring of a forked child."""
        self.run = run
        self.started_ns = time.monotonic_ns()
        self.folder = ""
        """Folder of this process in the run directory."""
        self.last_words = ""
        """Newest diagnostic, kept even if there is no log for it."""
        self.out = False
        """Whether the agent has taken itself out."""
        self.dormant = False
        """Whether this is a forked child that has recorded nothing yet."""
        self.names: dict[Hashable, int] = {}
        """Ids of interned names by key; ``name`` fills it."""
        self._wake = wake
        self._log: Optional[LogWriter] = None
        self._kept: list[dict[str, object]] = []
        self._later: deque[dict[str, object]] = deque()
        self._ticking = False
        """Whether the agent's thread writes what can wait."""
        self._counters: dict[str, itertools.count[int]] = {}
        self._said: set[tuple[str, str]] = set()

    def open(self, folder: str, origin: str) -> None:
        """Open the log in the process's folder; a forked child's begins with the lines inherited from its parent.

        Raises:
            OSError: no space, or no rights.
        """
        self.folder = folder
        self._log = LogWriter(folder)
        self._log.write(process.first_line(origin))
        for line in list(self._kept):
            self._log.write(line)
        while self._later:
            self._log.write(self._later.popleft())

    def after_fork(self) -> Optional[LogWriter]:
        """In a forked child: leave the parent's log to the parent; the caller closes it."""
        log, self._log = self._log, None
        self._later.clear()
        self._ticking = False
        return log

    @property
    def is_open(self) -> bool:
        """Whether there is a log. Without one nobody reads what this process reports."""
        return self._log is not None

    def log(self, line: dict[str, object]) -> None:
        """Append one line to the log unchanged; the caller provides ``t`` and ``at``."""
        if line.get("t") in _KEPT:
            self._kept.append(line)
            if self.dormant:
                return
        elif self.dormant:
            self._wake()
        self.write(line)

    def write(self, line: dict[str, object]) -> None:
        """Append one line to the log; in a forked child that has none yet, when it is made."""
        if self.dormant:
            self._later.append(line)
        elif self._log is not None and not self.out:
            self._log.write(line)

    def write_later(self, line: dict[str, object]) -> None:
        """The same, by the agent's thread where there is one: writing gives the interpreter lock away."""
        if self._ticking:
            self._later.append(line)
        else:
            self.write(line)

    def write_regularly(self) -> None:
        """Write what could wait, from the agent's thread."""
        self._ticking = True
        while self._later:
            self.write(self._later.popleft())

    def end(self, records: int, thread_cpu_ns: int) -> None:
        """Write the last line."""
        while self._later:
            self.write(self._later.popleft())
        if self._log is not None:
            line: dict[str, object] = {"t": "end", "at": time.monotonic_ns(), "records": records}
            line.update(lost_lines=self._log.lost, thread_cpu_ns=thread_cpu_ns)
            self._log.write(line)

    def name(self, key: Hashable, text: str, **fields: object) -> int:
        """The interned id of ``key``, a record's name; its line is logged on first use, with ``fields``."""
        known = self.names.get(key)
        if known is not None:
            return known
        if len(self.names) >= _MAX_NAMES:
            self.diagnostic("DX912", "more than %d record names: all further names are shown as (others)" % _MAX_NAMES)
            key, text, fields = _OTHERS, "(others)", {}
            if key in self.names:
                return self.names[key]
        number = self.new_id("name")
        self.log({"t": "name", "at": time.monotonic_ns(), "id": number, "text": text, **fields})
        self.names[key] = number
        return number

    def named(self, number: int) -> dict[str, object]:
        """The fields of a name's line; empty if there is none. Cost: O(names)."""
        lines = (line for line in list(self._kept) if line.get("t") == "name" and line.get("id") == number)
        return next(lines, {})

    def new_id(self, what: str) -> int:
        """The next id for ``what``: 1, 2, 3 ..."""
        counter = self._counters.get(what)
        if counter is None:
            counter = self._counters.setdefault(what, itertools.count(1))
        return next(counter)

    def diagnostic(self, code: str, text: str) -> None:
        """Log that something of ours failed or was given up; the same text is written once."""
        self.last_words = text
        if (code, text) in self._said or len(self._said) >= _MAX_DIAGNOSTICS:
            return
        self._said.add((code, text))
        if self._log is not None:
            self._log.write({"t": "diagnostic", "at": time.monotonic_ns(), "code": code, "text": text[:2000]})
