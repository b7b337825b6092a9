"""Writes in one of many ways: leaves_things.py KIND TOKEN SECONDS. 0 seconds: once, else again and again until then.

TOKEN is a part of every name outside of the working folder, so that what is left can be found.
"""

import ctypes
import fcntl
import mmap
import os
import pathlib
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

kind, token, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
home, work = pathlib.Path.home(), pathlib.Path.cwd()
project = work.parent / "project"
libc = ctypes.CDLL(None, use_errno=True)
turn = 0
kept = []


def plain():
    (work / "new.txt").write_text("new")
    (home / ".config").mkdir(exist_ok=True)
    (home / ".config" / "mine.json").write_text("{}")
    (work / "deep" / str(turn)).mkdir(parents=True, exist_ok=True)
    (work / "deep" / str(turn) / "file").write_bytes(bytes(100_000))
    (project / "generated.py").write_text("x = 1\n")


def append():
    for path in (work / "log.csv", home / ".history", project / "notes.txt"):
        with path.open("a") as file:
            file.write("one more line\n")


def rename_over():
    (work / "config.tmp").write_text(f"changed {turn}")
    os.replace(work / "config.tmp", work / "config.json")
    if (work / "data").exists():
        os.rename(work / "data", work / "moved")
    else:
        os.rename(work / "moved", work / "data")


def delete():
    for path in (work / "old.txt", home / ".history"):
        path.unlink(missing_ok=True)
    shutil.rmtree(work / "runs", ignore_errors=True)
    (work / "runs").mkdir()
    (work / "runs" / "events").write_text("new ones")


def truncate():
    os.truncate(work / "big.bin", 10)
    with open(work / "log.csv", "w"):
        pass
    with open(work / "config.json", "r+b") as file:
        file.seek(3)
        file.write(b"xx")


def modes():
    (work / "old.txt").chmod(0o600)
    (work / "runs").chmod(0o711)
    os.utime(work / "config.json", (1, 1))
    os.utime(home, (2, 2))
    try:
        os.chown(work / "log.csv", 12345, 12345)
    except OSError:  # EPERM; EINVAL in a namespace of users
        os.chown(work / "log.csv", os.getuid(), os.getgid())


def links():
    for name, make in (("soft", os.symlink), ("hard", os.link)):
        (work / name).unlink(missing_ok=True)
        make(work / "old.txt", work / name)
    (work / "hard").write_text("written through a hard link")
    (work / "soft").write_text("written through a symbolic link")
    (work / "latest").unlink(missing_ok=True)
    os.symlink("nowhere", work / "latest")
    (work / "out").write_text("through the link that was there before")


def attributes():
    os.setxattr(work / "old.txt", "user.mine", b"changed")
    try:
        os.removexattr(work / "config.json", "user.kept")
    except OSError:
        os.setxattr(work / "config.json", "user.kept", b"again")
    os.setxattr(work / "runs", "user.more", b"new")


def mapped():
    with open(work / "big.bin", "r+b") as file:
        memory = mmap.mmap(file.fileno(), 0)
        memory[: len(token)] = token.encode()
        memory[-4096:] = bytes(4096)
        memory.flush()
        memory.close()


def temporary():
    for folder in ("/tmp", "/var/tmp", "/dev/shm"):
        pathlib.Path(folder, f"{token}-{turn}").write_text("temporary")
        tempfile.mkdtemp(prefix=token, dir=folder)
    tempfile.NamedTemporaryFile(prefix=token, delete=False).write(b"x")


def system_v():
    key = int(token[-6:], 16) + turn % 50
    assert libc.shmget(key, 65536, 0o1600) >= 0
    assert libc.semget(key, 3, 0o1600) >= 0
    assert libc.msgget(key, 0o1600) >= 0


def posix_memory():
    from multiprocessing import shared_memory

    name = f"{token}-{turn}"
    memory = shared_memory.SharedMemory(name, create=True, size=1 << 16)
    memory.buf[:5] = b"hello"
    kept.append(memory)
    librt = ctypes.CDLL("librt.so.1")
    fd = librt.mq_open(f"/{name}".encode(), os.O_CREAT | os.O_RDWR, 0o600, None)
    if fd >= 0:
        os.close(fd)
    os.memfd_create(token)


def daemon():
    if not os.fork():
        os.setsid()
        if not os.fork():
            os.chdir("/")
            os.closerange(0, 1024)
            end = time.monotonic() + 600
            while time.monotonic() < end:
                with open(work / "daemon.log", "a") as file:
                    file.write("alive\n")
                time.sleep(0.05)
        os._exit(0)
    os.wait()


def children():
    for command in (["sleep", "600"], [sys.executable, "-c", f"import time; time.sleep(600) # {token}"]):
        subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    subprocess.Popen(["sh", "-c", "trap '' TERM INT HUP; while :; do date >> trap.log; sleep 0.05; done"])
    if not os.fork():
        os.execv(sys.executable, ["[kworker/9]", "-c", "import time; time.sleep(600)"])


def lock():
    file = open(work / "lock", "a+")
    fcntl.lockf(file, fcntl.LOCK_EX)
    os.ftruncate(file.fileno(), 0)
    file.write(str(os.getpid()))
    file.flush()
    os.close(os.open(home / f".lock-{turn}", os.O_CREAT | os.O_EXCL))


def relative_append():
    os.chdir("runs" if (work / "runs").is_dir() else ".")
    fd = os.open("../log.csv", os.O_WRONLY | os.O_APPEND)
    os.write(fd, b"by a relative path\n")
    os.close(fd)
    folder = os.open(work, os.O_DIRECTORY)
    os.close(os.open("at-a-folder", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    os.close(folder)
    os.chdir(work)


def inherited():
    """Descriptors 7 (appends), 8 (reads and writes), 9 (a folder) come from the shell."""
    os.write(7, b"appended through a descriptor\n")
    os.pwrite(8, b"overwritten", 2)
    os.close(os.open("made-below-a-descriptor", os.O_CREAT | os.O_WRONLY, dir_fd=9))
    os.utime("config.json", (3, 3), dir_fd=9)


def of_children():
    """As ``inherited``, by a child."""
    subprocess.run(["sh", "-c", "echo more >&7; echo over 1<>/dev/fd/8 >&8"], close_fds=False, check=True)


def commit():
    (work / "code.py").write_text(f"x = {turn}\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run([*git, "add", "-A"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", f"trial {turn}"], check=True)
    subprocess.run([*git, "stash", "list"], check=True, stdout=subprocess.DEVNULL)


def unix_socket():
    for path in (str(work / f"socket-{turn}"), f"/tmp/{token}-socket-{turn}", f"\0{token}-{turn}"):
        server = socket.socket(socket.AF_UNIX)
        server.bind(path)
        server.listen()
        client = socket.socket(socket.AF_UNIX)
        client.connect(path)
        server.accept()[0].sendall(b"hello")
        assert client.recv(5) == b"hello"


def fifo():
    path = work / f"fifo-{turn}"
    os.mkfifo(path)
    threading.Thread(target=lambda: path.write_text("through")).start()
    assert path.read_text() == "through"
    if not os.getuid():
        os.mknod(work / f"node-{turn}", 0o600 | 0o020000, os.makedev(1, 3))


def database():
    with sqlite3.connect(work / "runs.db") as connection:
        connection.execute("pragma journal_mode=wal")
        connection.execute("create table if not exists runs (name text, loss real)")
        connection.executemany("insert into runs values (?, ?)", [(token, float(number)) for number in range(500)])
    if turn % 2:
        connection.execute("delete from runs where loss > 100")
        connection.commit()


def compiled():
    (project / "package" / "fresh.py").write_text(f"y = {turn}\n")
    sys.path.insert(0, str(project))
    import package.fresh  # noqa: F401 - writes __pycache__
    import package.module  # noqa: F401
    import importlib

    importlib.reload(package.module)


def home_of_tools():
    for name in (".keras/datasets/x.npz", ".cache/huggingface/hub/y", ".local/share/z", ".netrc", ".bashrc"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        with (home / name).open("ab") as file:
            file.write(b"machine example\n")


def sparse():
    with open(work / "sparse.bin", "r+b" if (work / "sparse.bin").exists() else "wb") as file:
        file.truncate(100 << 20)
        file.seek(50 << 20)
        file.write(b"in the middle")
        libc.fallocate(file.fileno(), 3, 0, 4096)
    shutil.copyfile(work / "big.bin", work / "copy.bin")
    os.sync()


def whole_tree():
    shutil.copytree(work, home / f"backup-{turn}", symlinks=True, ignore=shutil.ignore_patterns("socket*", "fifo*"))
    shutil.rmtree(project, ignore_errors=True)
    (project / "package").mkdir(parents=True)
    (project / "package" / "module.py").write_text("z = 0\n")


def keras():
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import numpy as np
    import tensorflow as tf

    x = np.random.default_rng(0).normal(size=(1024, 20)).astype("float32")
    model = tf.keras.Sequential([tf.keras.Input((20,)), tf.keras.layers.Dense(16, "relu"), tf.keras.layers.Dense(1)])
    model.compile("adam", "mse")
    calls = tf.keras.callbacks
    keeps = [calls.ModelCheckpoint("checkpoints/{epoch}.keras"), calls.CSVLogger("log.csv", append=True)]
    keeps += [calls.BackupAndRestore("backup"), calls.TensorBoard("runs")]
    print("training", flush=True)
    model.fit(x, x.sum(axis=1), batch_size=16, epochs=3, verbose=0, callbacks=keeps)
    model.save("final.keras")
    model.save_weights("final.weights.h5")


if __name__ == "__main__":
    if kind != "keras":
        import stepscope

        span = stepscope.span
    else:
        import contextlib

        span = contextlib.nullcontext
    end = time.monotonic() + seconds
    while True:
        with span("write"):
            globals()[kind]()
        turn += 1
        if turn == 1:
            print("written", flush=True)
        if time.monotonic() > end:
            break
        time.sleep(0.02)
    print("done", flush=True)
    os._exit(0)  # as a trial ends
