"""What is there before a trial stays as it is: descriptors of a shell, sockets of services."""

import os
import socket
import subprocess
from pathlib import Path

import pytest

from .conftest import Trials

WRITES_BY_DESCRIPTOR = """
import os
os.write(7, b"more"); os.write(8, b"xx"); os.close(os.open("made", os.O_CREAT | os.O_WRONLY, dir_fd=9))
print(open("log.csv").read(), open("half.bin").read(), os.path.exists("made"), os.read(6, 9), os.lseek(8, 0, 1))
try: os.write(6, b"x")
except OSError as error: print(error.strerror)
"""


def test_what_a_shell_has_opened_is_the_trials_own(trials: Trials) -> None:
    """Files that are open for writing and folders lead to copies, at their positions; what is read is as it was."""
    for name in ("named.txt", "log.csv", "half.bin"):
        trials.file(f"work/{name}", name)
    before = trials.tree()
    shell = 'exec 6<named.txt 7>>log.csv 8<>half.bin 9<.; read -r -n 2 x <&8 || :; exec "$@"'
    done = subprocess.run(
        ["bash", "-c", shell, "bash", *trials.command(trials.python, "-c", WRITES_BY_DESCRIPTOR)],
        cwd=trials.work,
        env=trials.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if not line.startswith('{"')]
    assert lines == ["log.csvmore haxx.bin True b'named.txt' 4", "Bad file descriptor"], done.stderr
    assert trials.tree() == before


SERVICES = """
import socket
for path in ("mounted.sock", "run/service.sock", DEVICE):
    try: socket.socket(socket.AF_UNIX).connect(path); print("connected")
    except OSError as error: print(error.strerror)
try: open("run/x", "w")
except OSError as error: print(error.strerror)
"""


def test_sockets_that_a_container_is_given_lead_nowhere(trials: Trials) -> None:
    """The mounted socket of a service, one in a read-only folder and one in /dev are not reached; the folder is so."""
    if os.getuid():
        pytest.skip("only root can mount")
    device = f"/dev/isolation-{os.getpid()}"
    trials.file("work/mounted.sock", "")
    trials.file("work/run/none", "").unlink()
    code = SERVICES.replace("DEVICE", repr(device))
    shell = 'mount -t tmpfs tmpfs run; "$0" -c "$SERVE" & until [ -S run/service.sock ]; do :; done; '
    shell += 'mount --bind "$1" mounted.sock; mount -o remount,ro run; shift; "$@"; "$0" -c "$CODE"; kill $!'
    serve = "import os, socket, time; os.umask(0); s = socket.socket(socket.AF_UNIX); s.bind('run/service.sock'); "
    serve += "s.listen(); time.sleep(60)"
    servers = [socket.socket(socket.AF_UNIX) for _ in range(2)]
    try:
        for server, path in zip(servers, (str(trials.base / "service"), device), strict=True):
            server.bind(path)
            server.listen()
            Path(path).chmod(0o777)
        words = ["unshare", "-m", "sh", "-c", shell, "python3", servers[0].getsockname()]
        done = subprocess.run(
            [*words, *trials.command(trials.python, "-c", code)],
            cwd=trials.work,
            env={**trials.environment(), "CODE": code, "SERVE": serve},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        Path(device).unlink(missing_ok=True)
        for server in servers:
            server.close()
    lines = [line for line in done.stdout.splitlines() if not line.startswith('{"')]
    inside, outside = lines[:4], lines[4:]
    assert "connected" not in inside
    assert inside[3] == outside[3] == "Read-only file system"
    assert outside[:3] == ["connected"] * 3, done.stderr
