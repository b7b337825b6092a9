"""Ids of threads."""

import threading
from typing import cast

import pytest

from stepscope.agent.core.lines import AgentLog
from stepscope.agent.core.threads import Threads


class Log:
    """Keeps the lines of threads."""

    def __init__(self) -> None:
        self.lines: list[dict[str, object]] = []

    def new_id(self, what: str) -> int:
        """The next id."""
        assert what == "thread"
        return len(self.lines) + 1

    def write(self, line: dict[str, object]) -> None:
        """Keep a line."""
        self.lines.append(line)

    write_later = write


def test_a_thread_that_starts_has_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread in which the collector runs before Python lists it is known by its Thread object from the first call."""
    log = Log()
    threads = Threads(cast("AgentLog", log))
    starting = threading.Thread(name="request-5")
    vars(starting)["_ident"] = 12_345
    monkeypatch.setitem(vars(threading)["_limbo"], starting, starting)
    first = threads.of(12_345)
    monkeypatch.delitem(vars(threading)["_limbo"], starting)
    monkeypatch.setitem(vars(threading)["_active"], 12_345, starting)
    assert threads.of(12_345) == first
    assert [line["name"] for line in log.lines] == ["request-5"]
