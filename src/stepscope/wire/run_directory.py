"""Makes run directories (layout: ``stepscope.wire.env``) for the launcher and for jobs that are always measured."""

from __future__ import annotations

import json
import os

from stepscope.wire.env import CONFIG_NAME, PROCS_NAME, RUN_PREFIX
from stepscope.wire.place import FREE_DIVISOR, is_network, mounts, share_of
from stepscope.wire.ring import DEFAULT_SLOTS, HEADER_BYTES, RECORD_BYTES

MIN_RUN_BYTES = 4 << 20
SAMPLE_HZ = 20


def temporary_directories() -> list[str]:
    """Places for temporary files, best first: /dev/shm, then local temporary directories."""
    names = ["/dev/shm", os.environ.get("TMPDIR", ""), "/tmp", "/var/tmp"]  # noqa: S108 - private ones are made inside
    return list(dict.fromkeys(name for name in names if name))


def places(slots: int = DEFAULT_SLOTS) -> list[str]:
    """Places where a run directory can be made: writable, local, with some room; those with room for rings first.

    A small file system comes last: logs in a small /dev/shm would take the room of the job's own shared memory.
    """
    table = mounts()
    usable: list[tuple[bool, int, str]] = []
    devices: set[int] = set()
    for path in temporary_directories():
        try:
            info = os.statvfs(path)
            device = os.stat(path).st_dev
        except OSError:
            continue
        free = info.f_bavail * info.f_frsize
        good = os.access(path, os.W_OK | os.X_OK) and not is_network(path, table) and free >= MIN_RUN_BYTES
        if good and device not in devices:
            devices.add(device)
            usable.append((share_of(info) is not None, -free, path))
    ring = HEADER_BYTES + slots * RECORD_BYTES
    roomy = [path for small, less, path in usable if not small and -less >= FREE_DIVISOR * ring]
    return roomy + [path for _, _, path in sorted(usable) if path not in roomy]


def make(session: str, origin_ns: int, owner: tuple[int, int], slots: int = DEFAULT_SLOTS) -> str:
    """Make a private run directory with its configuration; ``owner``: (pid, start) of the responsible process.

    Raises:
        OSError: no place can hold one.
    """
    name = "%s%d-%s" % (RUN_PREFIX, os.getuid(), os.urandom(6).hex())
    rings: list[str] = []
    for place in places(slots):
        path = os.path.join(place, name)
        try:
            os.mkdir(path, 0o700)
        except OSError:
            continue
        rings.append(path)
    if not rings:
        tried = ", ".join(temporary_directories())
        raise OSError("no room for a run directory in %s; expected %d MiB: set TMPDIR" % (tried, MIN_RUN_BYTES >> 20))
    run = rings[0]
    os.mkdir(os.path.join(run, PROCS_NAME), 0o700)
    config = {
        "version": 1,
        "session": session,
        "origin_ns": origin_ns,
        "ring_dirs": rings,
        "sample_hz": SAMPLE_HZ,
        "slots": slots,
        "owner_pid": owner[0],
        "owner_ticks": owner[1],
        "pid_namespace": pid_namespace(),
    }
    write_json(os.path.join(run, CONFIG_NAME), config)
    return run


def pid_namespace() -> str:
    """Identify this process's pid namespace: /dev/shm may be shared between containers, process ids are not."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def write_json(path: str, data: dict[str, object]) -> None:
    """Write a JSON file whole or not at all."""
    temporary = os.path.join(os.path.dirname(path), ".%s.tmp" % os.path.basename(path))
    with open(temporary, "w", encoding="utf-8") as stream:
        json.dump(data, stream)
    os.replace(temporary, path)


def remove(run: str) -> None:
    """Delete a run directory and the ring directories that belong to it."""
    try:
        with open(os.path.join(run, CONFIG_NAME), encoding="utf-8") as stream:
            directories = json.load(stream).get("ring_dirs")
    except (OSError, ValueError, AttributeError):
        directories = None
    name = os.path.basename(run)
    others = [str(d) for d in directories] if isinstance(directories, list) else []
    for path in [*(p for p in others if os.path.basename(p) == name and p != run), run]:
        remove_tree(path)


def remove_tree(path: str) -> None:
    """Delete a directory without following links; what cannot be deleted stays."""
    for folder, folders, files in os.walk(path, topdown=False):
        for name in files:
            _quietly_unlink(os.path.join(folder, name))
        for name in folders:
            inner = os.path.join(folder, name)
            if os.path.islink(inner):
                _quietly_unlink(inner)
            else:
                _quietly_rmdir(inner)
    _quietly_rmdir(path)


def _quietly_unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return


def _quietly_rmdir(path: str) -> None:
    try:
        os.rmdir(path)
    except OSError:
        return
