"""A trial notes which peers its processes want to reach, and changes nothing of what they do."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stepscope.agent import bootstrap
from stepscope.wire import peers
from stepscope.wire.env import PEERS_NAME

WATCHED = """
import socket, sys
sys.path.insert(0, {source!r})
from stepscope.agent import peers
peers.watch({run!r})
def attempt(call, *args):
    try:
        call(*args)
    except OSError:
        pass
def socket_of(family, kind=socket.SOCK_STREAM):
    made = socket.socket(family, kind)
    made.settimeout(0.01)
    return made
"""
SOURCE = str(Path(bootstrap.__file__).resolve().parents[2])


def noted(folder: Path, code: str) -> dict[str, int]:
    """What a program that runs in this network namespace, or in an empty one, notes."""
    peers.arm(str(folder))
    program = WATCHED.format(source=SOURCE, run=str(folder)) + code
    apart = ["unshare", "-rn"] if subprocess.run(["unshare", "-rn", "true"], check=False).returncode == 0 else []
    if not apart:
        pytest.skip("no namespaces of networks: these programs must not send")
    done = subprocess.run([*apart, sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert not (folder / "trouble.jsonl").exists()
    return peers.read(str(folder))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("for _ in range(3): attempt(socket.getaddrinfo, 's3.example.com', 443)", {"s3.example.com:443": 3}),
        ("attempt(socket.getaddrinfo, b's3.example.com', 'https')", {"s3.example.com:443": 1}),
        ("attempt(socket.getaddrinfo, 's3.example.com', None)", {"s3.example.com": 1}),
        ("attempt(socket.gethostbyname, 'db.example.com')", {"db.example.com": 1}),
        ("attempt(socket_of(socket.AF_INET).connect, ('192.0.2.1', 5432))", {"192.0.2.1:5432": 1}),
        ("attempt(socket.create_connection, ('192.0.2.1', 5432), 0.01)", {"192.0.2.1:5432": 1}),
        ("attempt(socket_of(socket.AF_INET6).connect, ('2001:db8::1', 80, 0, 0))", {"[2001:db8::1]:80": 1}),
        (
            "attempt(socket_of(socket.AF_INET, socket.SOCK_DGRAM).sendto, b'x', ('192.0.2.1', 8125))",
            {"192.0.2.1:8125": 1},
        ),
        ("attempt(socket_of(socket.AF_UNIX).connect, '/run/service.sock')", {"unix:/run/service.sock": 1}),
        ("attempt(socket_of(socket.AF_UNIX).connect, b'\\0service')", {"unix:@service": 1}),
    ],
)
def test_what_python_wants_to_reach(tmp_path: Path, code: str, expected: dict[str, int]) -> None:
    """Lookups, connections and datagrams are counted by host and port, each attempt once."""
    assert noted(tmp_path, code) == expected


@pytest.mark.parametrize(
    "code",
    [
        "attempt(socket.create_connection, ('localhost', 80), 0.01)",
        "attempt(socket.create_connection, ('127.0.0.1', 80), 0.01)",
        "attempt(socket_of(socket.AF_INET6).connect, ('::1', 80, 0, 0))",
        "attempt(socket.getaddrinfo, socket.gethostname(), None)",
        "attempt(socket.getaddrinfo, None, 80)",
        "a, b = socket.socketpair(); a.send(b'x'); b.sendmsg([b'y'])",
        "import json, urllib.request",
    ],
)
def test_what_stays_inside_is_not_noted(tmp_path: Path, code: str) -> None:
    """Loopback, the own name and pairs of sockets are nobody outside."""
    assert noted(tmp_path, code) == {}


def test_lookup_and_connection_are_one_attempt(tmp_path: Path) -> None:
    """A name that is found is not counted again by its address, and not at all if it is this host's."""
    found = """
class Looked:
    answers = {"s3.example.com": "192.0.2.1", "here.example.com": "127.0.0.9"}
real = socket.getaddrinfo
def getaddrinfo(host, port, *rest):  # as with a line in /etc/hosts
    sys.audit("socket.getaddrinfo", host, port, 0, 0, 0)
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (Looked.answers[host], port))]
socket.getaddrinfo = getaddrinfo
attempt(socket.create_connection, ("s3.example.com", 443), 0.01)
attempt(socket.create_connection, ("s3.example.com", 443), 0.01)
attempt(socket.create_connection, ("here.example.com", 443), 0.01)
"""
    assert noted(tmp_path, found) == {"s3.example.com:443": 2}


def test_imported_trackers_are_noted(tmp_path: Path) -> None:
    """The first import of each tracker is."""
    code = """
for name in ("wandb", "mlflow", "wandbx"):
    try:
        __import__(name)
    except ImportError:
        pass
"""
    assert set(noted(tmp_path, code)) == {"tracker:wandb", "tracker:mlflow"}


def test_a_run_directory_that_has_gone_harms_nothing(tmp_path: Path) -> None:
    """The program's call has the same result, with and without the file."""
    run = tmp_path / "gone"
    code = WATCHED.format(source=SOURCE, run=str(run)) + "socket.getaddrinfo('127.0.0.1', 80); attempt(socket.socket)"
    code += "\nattempt(socket_of(socket.AF_UNIX).connect, '/no/such')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_events_of_others_are_let_through(tmp_path: Path) -> None:
    """Code that raises events of the same names with other arguments is not disturbed; the report says what was odd."""
    code = WATCHED.format(source=SOURCE, run=str(tmp_path))
    code += "for event in ('import', 'socket.connect', 'socket.getaddrinfo'): sys.audit(event, []); sys.audit(event)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "peers of a trial" in (tmp_path / "trouble.jsonl").read_text()


def test_only_armed_runs_are_watched(tmp_path: Path) -> None:
    """A process without the file does not load the hook; one with it does."""
    code = f"import sys; sys.path.insert(0, {SOURCE!r}); from stepscope.agent import bootstrap; "
    code += f"bootstrap.arm({str(tmp_path)!r}); print('stepscope.agent.peers' in sys.modules)"
    assert f"/{PEERS_NAME}" == bootstrap._PEERS
    for expected in ("False\n", "True\n"):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == expected
        peers.arm(str(tmp_path))


def test_damaged_and_endless_notes(tmp_path: Path) -> None:
    """A damaged line is left out, what was taken back does not count, and the file does not grow without end."""
    run = str(tmp_path)
    peers.arm(run)
    peers.write(run, "a:1", 2)
    peers.write(run, "b:1")
    peers.write(run, "b:1", -1)
    with (tmp_path / PEERS_NAME).open("ab") as stream:
        stream.write(b'{"half\n[1]\nnull\n["c:1", "x"]\n')
    assert peers.read(run) == {"a:1": 2}
    os.truncate(tmp_path / PEERS_NAME, peers.MAX_BYTES)
    peers.write(run, "d:1")
    assert (tmp_path / PEERS_NAME).stat().st_size == peers.MAX_BYTES
    assert json.dumps(peers.read(str(tmp_path / "none"))) == "{}"
