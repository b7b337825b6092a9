"""Sessions by handle: a key that is made of the path and holds no text of a job, or the path itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.server.open_sessions import OpenSession, OpenSessions
from stepscope.server.session_catalogue import ListedSession
from stepscope.server.timelines.kept_timelines import Timelines
from stepscope.sessions.latest import latest
from stepscope.tables import layout
from stepscope.tables.errors import SessionError

if TYPE_CHECKING:
    from stepscope.store.span_cache import MappedCache

WAIT_S = 1.0
"""Longest time for which a timeline's build is waited for at once."""


class Handles:
    """The sessions that a client has named."""

    def __init__(self) -> None:
        """Start without sessions."""
        self._paths: dict[str, Path] = {}
        self._open = OpenSessions()
        self._timelines = Timelines()

    def path(self, word: str) -> Path:
        """The session of a handle or a path; of "" the latest, as `stepscope report` takes it.

        Raises:
            SessionError: there is none.
        """
        if word in self._paths:
            return self._paths[word]
        path = (Path(word) if word else latest()).resolve()
        if not path.exists():
            raise SessionError(f"{word} is neither a handle of this server nor a session")
        self._paths[layout.key_of(path)] = path
        return path

    def opened(self, word: str) -> OpenSession:
        """The session, opened.

        Raises:
            SessionError: there is none.
        """
        return self._open.open(self._entry(word))

    def handle(self, word: str) -> str:
        """The handle of a session."""
        return self._entry(word).key

    def timeline(self, word: str) -> MappedCache:
        """The session's timeline; it is built first if this is the first question.

        Raises:
            SessionError: it cannot be built.
        """
        entry = self._entry(word)
        while True:
            state = self._timelines.state(entry, WAIT_S)
            if state.state == "failed":
                raise SessionError(f"the timeline could not be built: {state.doing}")
            if state.state != "building":
                return self._timelines.reader(entry.key, state.build)

    def close(self) -> None:
        """End what is being built."""
        self._timelines.close()

    def _entry(self, word: str) -> ListedSession:
        path = self.path(word)
        return ListedSession(key=layout.key_of(path), path=path)
