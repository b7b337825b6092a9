"""A container's /dev/shm of 64 MB: the rings of 8 ranks with 4 workers each leave the job its room."""

import json
import os
import subprocess
import sys

import pytest

from stepscope.wire.ring import MIN_SLOTS, RECORD_BYTES

from .conftest import Project, environment

SIZE = 64 << 20
CONTAINER = f"""
mount --bind . /mnt && cd /mnt || exit 77
mount -t tmpfs -o size={SIZE} tmpfs /dev/shm || exit 77
for folder in /tmp /var/tmp; do
  mount --bind $folder $folder && mount -o remount,bind,ro $folder || exit 77
done
exec "$@"
"""
"""What a container has: a small /dev/shm, and nothing else that can be written but the working directory."""
RANK = """
import os, sys, stepscope

def record():
    with stepscope.span("work"): pass

record()
recorded, told = os.pipe()
over, end = os.pipe()
for _ in range(4):
    if os.fork() == 0:
        os.close(end)
        record()
        os.write(told, b"x")
        os.read(over, 1)
        os._exit(0)
seen = 0
while seen < 4: seen += len(os.read(recorded, 4))
print("up", flush=True)
sys.stdin.read()
os.close(end)
for _ in range(4): os.wait()
"""
RANKS = f"""
import json, os, subprocess, sys

def rings():
    found = []
    for folder, _, names in os.walk("/dev/shm"):
        sizes = [os.lstat(os.path.join(folder, name)) for name in names]
        found += [size.st_blocks * 512 for size in sizes if size.st_size > {MIN_SLOTS * RECORD_BYTES}]
    return found

ranks = [subprocess.Popen([sys.executable, "rank.py"], stdin=-1, stdout=-1) for _ in range(8)]
assert all(rank.stdout.readline() == b"up\\n" for rank in ranks)
space = os.statvfs("/dev/shm")
json.dump([rings(), (space.f_blocks - space.f_bfree) * space.f_frsize], open("seen.json", "w"))
for rank in ranks: rank.communicate()
print("done")
"""


def run_ranks(project: Project) -> tuple[list[int], int]:
    """(rings in /dev/shm, bytes used there) while 8 ranks and their workers live, all of which have recorded."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    project.script("rank.py", RANK)
    project.script("ranks.py", RANKS)
    command = project.command("run", "-q", "--session", "s.stepscope", "--", sys.executable, "ranks.py")
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", CONTAINER, "sh", *command],
        cwd=project.root,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 77:
        pytest.skip("mounting is not allowed here")
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr
    rings, used = json.loads((project.root / "seen.json").read_text())
    return rings, used


def test_without_a_disk_rings_hold_to_a_twentieth(project: Project) -> None:
    """Some processes have a small ring; the others are not measured, which the report says."""
    rings, used = run_ranks(project)
    assert len(rings) > 4
    assert sum(rings) <= SIZE // 20
    assert used < SIZE // 8
    report = json.loads((project.root / "s.stepscope" / "report.json").read_text())
    said = [d["text"] for d in report["diagnostics"] if d["code"] == "DX900"]
    assert said
    assert all("at most a 20th of a file system below 1024 MiB" in text for text in said)
