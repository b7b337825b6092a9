"""Notes which peers the process wants to reach, and which trackers it imports.

Peers are what Python looks up by name, connects to and sends to.

An audit hook (sys.addaudithook), in trials only, since it cannot be removed. It reads the arguments of an event and
changes nothing; each event of the interpreter costs 0.2 us more. Connections of libraries that do not go through
Python's ``socket`` are not seen (``tf.io.gfile``, gRPC), nor are those to the own loopback interface. A lookup and the
connection that follows it are one attempt.
"""

from __future__ import annotations

import os
import sys
import threading

from stepscope.wire import peers, trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Union

    from stepscope.agent.core.foreign import Foreign

_EVENTS = frozenset(
    (
        *("socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname"),
        "import",  # of a module that is not loaded yet
    )
)
_LOOPBACK = ("127.", "::1", "::ffff:127.", "localhost", "ip6-localhost")
_ANY = ("::", ".".join("0000"), "")
"""Addresses that mean this host."""
_SERVICES = {"http": 80, "https": 443}
_HEX = frozenset("0123456789abcdefABCDEF:.")


class _Looked(threading.local):
    """The name that a thread has looked up last, and its port."""

    peer = ""
    port: Optional[int] = None


class Watch:
    """The hook of one run."""

    __slots__ = ("_looked", "_run")

    def __init__(self, run: str) -> None:
        self._run = run
        self._looked = _Looked()

    def __call__(self, event: str, args: tuple[Foreign, ...]) -> None:
        """Take an event of the interpreter; never raises."""
        if event not in _EVENTS:
            return
        try:
            if event == "import":
                if args[0] in peers.TRACKERS:
                    peers.write(self._run, peers.TRACKER + args[0])
            elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
                self._lookup(args[0], args[1] if len(args) > 1 else None)
            else:
                self._connection(args[1])
        except (AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError) as error:
            trouble.tell(self._run, "peers of a trial", error)

    def _lookup(self, host: Foreign, port: Foreign) -> None:
        name, number = _text(host), _port(port)
        if name and not _is_number(name) and not _is_loopback(name) and name != os.uname().nodename:
            self._looked.peer, self._looked.port = _peer(name, number), number
            peers.write(self._run, self._looked.peer)

    def _connection(self, address: Foreign) -> None:
        if isinstance(address, (str, bytes)):
            name = _text(address)
            peers.write(self._run, "unix:" + ("@" + name[1:] if name[:1] == "\0" else os.path.abspath(name)))
        elif isinstance(address, tuple) and isinstance(address[0], (str, bytes)):
            self._internet(_text(address[0]), int(address[1]))

    def _internet(self, host: str, port: int) -> None:
        looked = self._looked
        follows = bool(looked.peer) and looked.port == port
        if _is_loopback(host) or not host:
            if follows:  # a name of this host
                peers.write(self._run, looked.peer, -1)
                looked.peer = ""
        elif not follows:
            peers.write(self._run, _peer(host, port))


def _text(value: Union[str, bytes, None]) -> str:
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace")
    return value if isinstance(value, str) else ""


def _port(value: Foreign) -> Optional[int]:
    text = _text(value)
    number = _SERVICES.get(text, text) if text else value
    try:
        return int(number)
    except (TypeError, ValueError):
        return None


def _is_loopback(host: str) -> bool:
    return host.startswith(_LOOPBACK) or host in _ANY or host.endswith(".localhost")


def _is_number(host: str) -> bool:
    return (":" in host or host.replace(".", "").isdigit()) and _HEX.issuperset(host.partition("%")[0])


def _peer(host: str, port: Optional[int]) -> str:
    name = "[%s]" % host if ":" in host else host
    return name if not port else "%s:%d" % (name, port)


def watch(run: str) -> None:
    """Note the peers of this process from now on."""
    sys.addaudithook(Watch(run))
