"""A launcher that dies before it has a sidecar leaves no run directory."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stepscope.launcher import caretaker

LAUNCHER = """
import os, signal, sys
from pathlib import Path
from stepscope.launcher.caretaker import Caretaker
folders = [Path(name) for name in sys.argv[2:]]
carer = Caretaker()
print(carer.pid, flush=True)
carer.watch(folders)
if sys.argv[1] == "dismissed":
    carer.dismiss()
os.kill(os.getpid(), signal.SIGKILL)
"""


def folder(path: Path) -> Path:
    (path / "procs" / "1-2").mkdir(parents=True)
    (path / "procs" / "1-2" / "ring").write_text("x")
    (path / "to-elsewhere").symlink_to(path.parent)
    return path


@pytest.mark.parametrize("ending", ["killed", "dismissed"])
def test_folders_of_a_killed_launcher(tmp_path: Path, ending: str) -> None:
    """They go with all that is in them and nothing else, unless the caretaker was dismissed before."""
    folders = [folder(tmp_path / name) for name in ("run", "a folder; rm *", "-rings")]
    (tmp_path / "other").touch()
    with subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, ending, *map(str, folders)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert process.wait() == -signal.SIGKILL
    while alive(pid):
        os.sched_yield()
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == (["other"] if ending == "killed" else ["-rings", "a folder; rm *", "other", "run"])


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:1]
    except OSError:
        return False


def test_only_where_it_is_wanted(tmp_path: Path) -> None:
    """Without a trial nothing is started; with one it is gone afterwards, also if it was killed."""
    with caretaker.present(wanted=False) as none:
        assert none is None
    with caretaker.present(wanted=True) as carer:
        assert carer is not None
        os.kill(carer.pid, signal.SIGKILL)
    with pytest.raises(ChildProcessError):
        os.waitpid(carer.pid, 0)
    carer.dismiss()
