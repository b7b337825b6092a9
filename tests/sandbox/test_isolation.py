"""A job that is started isolated runs as always and leaves nothing behind, as root and as a normal user."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from stepscope.sandbox import isolated_processes, isolation

from .conftest import PATIENCE_S, SOURCE, Trials, as_user

WRITES = """
import os, pathlib, shutil, tempfile
home, work = pathlib.Path.home(), pathlib.Path.cwd()
with open("log.csv", "a") as log: log.write("more\\n")
os.remove("old.txt")
shutil.rmtree("runs"); os.makedirs("runs/new")
os.rename("named.txt", "renamed.txt")
os.chmod("mode.txt", 0o600); os.utime("mode.txt", (0, 0))
with open("half.bin", "r+b") as file: file.seek(2); file.write(b"xx")
home.joinpath(".cache/mine").write_text("cached")
home.joinpath("new").mkdir(); home.joinpath("new/deep.txt").write_text("deep")
made = [tempfile.mkdtemp(), "/var/tmp/isolation-made", "/dev/shm/isolation-made"]
for path in made[1:]: pathlib.Path(path).write_text("made")
print(*made, sep="\\n")
print(sorted(os.listdir()), work.joinpath("log.csv").read_text(), os.listdir("runs"))
"""

DAEMON = """
import os, sys, time
if not os.fork():
    os.setsid()
    if not os.fork():
        for fd in (0, 1, 2): os.close(fd)
        time.sleep(600)
    os._exit(0)
os.wait()
"""

PROBE = """
import os, resource, signal, sys
status = open("/proc/self/status").read()
print([l.split() for l in status.splitlines() if l.startswith(("Uid", "Gid", "NoNewPrivs"))])
masks = [l.split() for l in status.splitlines() if l.startswith(("SigBlk", "SigIgn"))]
print([(name, int(mask, 16) & ~(3 << 31)) for name, mask in masks])  # 32, 33: glibc's own
print(os.getcwd(), oct(os.umask(0)), sys.argv, sorted(os.environ.items()), os.nice(0))
print(os.getpgrp() == os.getpgid(os.getppid()))
print(resource.getrlimit(resource.RLIMIT_NOFILE), sorted(int(f) for f in os.listdir("/proc/self/fd"))[:3])
print(sorted(f for f in map(int, os.listdir("/proc/self/fd")) if os.path.exists(f"/proc/self/fd/{f}")))
"""

CONNECT = """
import socket, sys
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5).close(); print("connected")
except OSError as error: print("refused")
"""

WITHIN = """
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=lambda: server.accept()[0].sendall(b"hello")).start()
print(socket.create_connection(server.getsockname(), 5).recv(9))
try: socket.getaddrinfo("stepscope.invalid", 80)
except OSError as error: print("no name")
"""


def prepare(trials: Trials) -> None:
    """Files of all kinds in the user's folders."""
    for name in ("old.txt", "named.txt", "mode.txt", "log.csv", "half.bin", "runs/old/a", "runs/b"):
        trials.file(f"work/{name}", name)
    trials.file("home/.cache/mine", "before")


def test_a_job_sees_other_contents_of_files(trials: Trials) -> None:
    """Its module and its script are edited for it alone; links lead to the file that they name."""
    trials.file("work/train.py", "import step; print('plain', step.N)")
    trials.file("work/real.py", "N = 1")
    (trials.work / "step.py").symlink_to("real.py")
    script, module = trials.file("home/a", "import step; print('edited', step.N)"), trials.file("home/b", "N = 2")
    before = trials.tree()
    replaced = [[str(trials.work / "train.py"), str(script)], [str(trials.work / "step.py"), str(module)]]
    assert trials.run(trials.python, "-B", "train.py", replaced=replaced).strip() == "edited 2"
    assert trials.run(trials.python, "-B", "train.py").strip() == "plain 1"
    assert trials.tree() == before


def test_files_are_as_before(trials: Trials) -> None:
    """The job sees what it writes, deletes, renames and replaces; its files and folders are byte-identical after it."""
    prepare(trials)
    before = trials.tree()
    out = trials.run_code(WRITES)
    made, seen = out.splitlines()[:3], "\n".join(out.splitlines()[3:])
    assert seen.endswith("['new']")
    assert "'renamed.txt'" in seen
    assert "log.csvmore" in seen
    assert trials.tree() == before
    assert not any(Path(path).exists() for path in made)
    assert trials.said[-1] == {"code": 0, "stuck": [], "notes": [], "children": "", "mounts_same": True}


def test_kept_folders_are_real(trials: Trials) -> None:
    """What is written to a kept folder is there afterwards, below a covered one and in shared memory."""
    kept = [trials.file("work/kept/a", "a").parent, Path(f"/dev/shm/isolation-{os.getpid()}")]
    kept[1].mkdir()
    os.chown(kept[1], trials.uid, trials.uid)
    names = [str(path) for path in kept]
    try:
        trials.run_code(f"for path in {names}: open(path + '/b', 'w').write('b')", keep=names)
        assert [sorted(file.name for file in path.iterdir()) for path in kept] == [["a", "b"], ["b"]]
    finally:
        shutil.rmtree(kept[1])


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("pass", 0),
        ("raise SystemExit(3)", 3),
        ("import os; os.kill(os.getpid(), 9)", -9),
        ("import os; os.kill(os.getpid(), 2)", -2),
        ("import os; os.abort()", -6),
    ],
)
def test_how_the_job_ends(trials: Trials, code: str, expected: int) -> None:
    """Exit codes and signals come through."""
    trials.run_code("import signal; signal.signal(2, signal.SIG_DFL);" + code)
    assert trials.said[-1]["code"] == expected


def test_job_is_as_without_isolation(trials: Trials) -> None:
    """Arguments, environment, folder, umask, limits, signals, descriptors, ids: as if started directly."""
    plain = subprocess.run(
        [*as_user(trials.uid), trials.python, "-c", PROBE, "a", "b c"],
        cwd=trials.work,
        env=trials.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert trials.run_code(PROBE, "a", "b c") == plain.stdout.rstrip("\n")


def test_program_that_cannot_be_started(trials: Trials) -> None:
    """The error is that of a direct start, and a text without a first line is run by the shell."""
    trials.run("no-such-program")
    assert trials.said == [{"errno": 2}]
    trials.run(str(trials.file("work/not-executable", "echo")))
    assert trials.said == [{"errno": 13}]
    script = trials.file("work/plain", "echo hello $1\n")
    script.chmod(0o755)
    assert trials.run(str(script), "you") == "hello you"


def test_daemons_end_with_the_job(trials: Trials) -> None:
    """A process that left its parent, session and group is dead when the job has ended, and no zombie."""
    trials.run_code(DAEMON)
    started, ended = trials.said
    assert ended == {"code": 0, "stuck": [], "notes": [], "children": "", "mounts_same": True}
    assert isolated_processes.within(frozenset(started["namespaces"])) == []


@pytest.mark.parametrize("victim", ["starter", "job", "all"])
def test_killed_trials_leave_no_process(trials: Trials, victim: str) -> None:
    """Whoever is killed: job, daemon and guard die, and with them the mounts."""
    process = trials.process(trials.python, "-c", DAEMON + "print('ready', flush=True); time.sleep(600)")
    assert process.stdout is not None
    started = json.loads(process.stdout.readline())
    assert process.stdout.readline() == "ready\n"
    namespaces = frozenset(started["namespaces"])
    assert set(isolated_processes.within(namespaces)) > {started["pid"], started["guard"]}
    for pid in {"starter": [process.pid], "job": [started["pid"]], "all": [process.pid, started["pid"]]}[victim]:
        os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=PATIENCE_S)
    deadline = time.monotonic() + PATIENCE_S
    while isolated_processes.within(namespaces) or Path(f"/proc/{started['guard']}").exists():
        assert time.monotonic() < deadline


def test_network_is_loopback_alone(trials: Trials) -> None:
    """A server of the host sees no connection, names are not found, and the job's own loopback works."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = str(server.getsockname()[1])
        assert trials.run_code(CONNECT, port) == "refused"
        with pytest.raises(BlockingIOError):
            server.accept()
        assert trials.run_code(CONNECT, port, network=True) == "connected"
        server.accept()[0].close()
    assert trials.run_code(WITHIN) == "b'hello'\nno name"


def test_services_of_the_host_are_not_reached_by_their_sockets(trials: Trials) -> None:
    """A socket in a folder (as databases have one) does not lead out, nor does an abstract one."""
    paths = [str(trials.work / "service"), f"\0isolation-{os.getpid()}"]
    code = (
        "import socket, sys\n"
        f"for path in {paths}:\n"
        "    try: socket.socket(socket.AF_UNIX).connect(path); print('connected')\n"
        "    except OSError: print('refused')\n"
    )
    servers = [socket.socket(socket.AF_UNIX) for _ in paths]
    for server, path in zip(servers, paths, strict=True):
        server.bind(path)
        server.listen()
    Path(paths[0]).chmod(0o777)
    assert trials.run_code(code) == "refused\nrefused"
    for server in servers:
        server.close()


def test_what_may_be_written_is_bounded(trials: Trials) -> None:
    """Beyond the bound the job's disk is full; the real file is as before."""
    file = trials.file("work/data", "data")
    code = "open('data', 'ab').write(bytes(1 << 20)); open('more', 'wb').write(bytes(256 << 20))"
    assert "No space left on device" in trials.run_code(code, tmpfs_bytes=128 << 20)
    assert file.read_text() == "data"


def test_shared_memory_is_the_jobs_own(trials: Trials) -> None:
    """Segments of System V and files in /dev/shm, which outlive processes, are gone."""
    code = "import ctypes; print(ctypes.CDLL(None).shmget(0x5757, 4096, 0o1666) >= 0)"
    assert trials.run_code(code) == "True"
    assert not any(line.split()[0] == str(0x5757) for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:])


def test_what_is_mounted_below_is_there(trials: Trials) -> None:
    """File systems mounted below a home are seen with their files, and are as before; for a normal user, too."""
    if os.getuid():
        pytest.skip("only root can mount")
    prepare(trials)
    (trials.home / "disk").mkdir()
    read_only = trials.home / "fixed"
    read_only.mkdir()
    inner = trials.command(
        trials.python,
        "-c",
        "import os; print(sorted(os.listdir('.')), os.listdir('folder'))\n"
        "os.remove('a'); open('folder/c', 'w').write('c')\n"
        "open('../.cache/mine', 'w'); open('../new', 'w'); os.remove('../.cache/mine')\n"
        "try: open('../fixed/x', 'w')\nexcept OSError as error: print(error.strerror)",
    )
    script = f"""
import os, subprocess, sys
def call(*words): subprocess.run(words, check=True)
call("mount", "--make-rprivate", "/")
call("mount", "-t", "tmpfs", "tmpfs", {str(trials.home / "disk")!r})
call("mount", "-t", "tmpfs", "-o", "ro", "tmpfs", {str(read_only)!r})
os.chdir({str(trials.home / "disk")!r})
os.mkdir("folder")
for name in ("a", "folder/b"): open(name, "w").write("before")
for name in (".", "a", "folder", "folder/b"): os.chown(name, {trials.uid}, {trials.uid})
sys.stdout.flush()
subprocess.run({inner!r}, check=True)
print(open("a").read(), os.listdir("folder"), open("../.cache/mine").read(), os.path.exists("../new"), flush=True)
"""
    done = subprocess.run(
        ["unshare", "-m", "python3", "-c", script],
        env=trials.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if not line.startswith('{"')]
    assert done.stderr == ""
    assert lines == ["['a', 'folder'] ['b']", "Read-only file system", "before ['b'] before False"]


def test_a_mount_below_a_folder_that_the_user_may_not_enter(trials: Trials) -> None:
    """Containers of root's, another user's desktop: the trial starts, and sees as little of it as the user."""
    if os.getuid():
        pytest.skip("only root can mount")
    closed = trials.base / "closed"
    (closed / "mounted").mkdir(parents=True)
    closed.chmod(0o700)
    code = f"import os; print(os.path.isdir({str(closed)!r}), os.path.exists({str(closed / 'mounted' / 'x')!r}))"
    mounts = 'mount -t tmpfs tmpfs "$0" && echo x > "$0"/x && exec "$@"'
    command = trials.command(trials.python, "-c", code)
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", mounts, str(closed / "mounted"), *command],
        env=trials.environment(),
        cwd=trials.work,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if not line.startswith('{"')]
    assert (lines, done.stderr) == ([f"True {trials.uid == 0}"], "")


def test_what_the_observer_sees(trials: Trials) -> None:
    """From outside, the job's mappings have the paths of the real files, and its memory can be read."""
    process = trials.process(trials.python, "-c", "import time; print('ready', flush=True); time.sleep(600)")
    assert process.stdout is not None
    pid = json.loads(process.stdout.readline())["pid"]
    assert process.stdout.readline() == "ready\n"
    maps = Path(f"/proc/{pid}/maps").read_text()
    os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=PATIENCE_S)
    paths = {line.split()[5] for line in maps.splitlines() if len(line.split()) > 5 and "/" in line}
    assert str(Path(trials.python).resolve()) in paths
    assert all(Path(path).is_file() for path in paths)


FORBID = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
uid = os.getuid()
assert libc.unshare(0x10000000) == 0
open("/proc/self/setgroups", "w").write("deny")
open("/proc/self/uid_map", "w").write(f"0 {uid} 1")
open("/proc/sys/user/max_user_namespaces", "w").write("0")
assert libc.prctl(24, 21, 0, 0, 0) == 0  # CAP_SYS_ADMIN leaves the bounding set
code = "from stepscope.sandbox import isolation; print(isolation.problem())"
os.execv(sys.executable, [sys.executable, "-c", code])
"""


def test_a_machine_that_forbids_it(trials: Trials) -> None:
    """Where user namespaces are used up and rights are missing, the reason is named, with what to look at."""
    done = subprocess.run(
        [*as_user(trials.uid), trials.python, "-c", FORBID],
        env={"PYTHONPATH": str(SOURCE)},
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("it cannot be isolated here (unshare: ")
    assert "sysctl user.max_user_namespaces" in done.stdout


def test_problem_of_this_machine_leaves_nothing(trials: Trials) -> None:
    """Asking whether isolation is possible changes no mount and leaves no process."""
    before = Path("/proc/self/mountinfo").read_text()
    assert isolation.problem() == ""
    assert Path("/proc/self/mountinfo").read_text() == before
