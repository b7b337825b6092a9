"""Connections that bring no whole request: they are let go, so that others are served (docs/security.md).

uvicorn waits for the first request of a connection for ever, and answers no one (503) once there are as many
connections as it may have. Any process of the host could fill them, without a token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

REQUEST_S = 15
"""Time that a request may take to arrive, its head to the end; between two requests of a connection, too."""
MAX_WAITING = 128
"""Number of connections that may wait for one; each that comes beyond it takes the place of the one that waits
longest.
"""


class Impatient(H11Protocol):
    """HTTP of uvicorn, for one server a process."""

    waiting: dict[Impatient, asyncio.TimerHandle] = {}  # noqa: RUF012 - shared by the connections of the server
    """Connections without a whole request, those that wait longest first, and when each is let go."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for its first request."""
        super().connection_made(cast("asyncio.Transport", transport))
        self._wait()

    def data_received(self, data: bytes) -> None:
        """A part of a request, or all of it."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._go_on()

    def on_response_complete(self) -> None:
        """Wait for the next one, unless it has come already and is being answered."""
        super().on_response_complete()
        answers = self.cycle is not None and not self.cycle.response_complete
        if not answers and not self.transport.is_closing():
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone, for whatever reason."""
        self._go_on()
        super().connection_lost(exc)

    def let_go(self) -> None:
        """Close it, whatever it has sent."""
        self._go_on()
        self.transport.abort()

    def _wait(self) -> None:
        self._go_on()
        self.waiting[self] = self.loop.call_later(REQUEST_S, self.let_go)
        if len(self.waiting) > MAX_WAITING:
            next(iter(self.waiting)).let_go()

    def _go_on(self) -> None:
        timer = self.waiting.pop(self, None)
        if timer is not None:
            timer.cancel()
