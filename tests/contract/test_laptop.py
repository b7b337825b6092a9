"""Reports are read on laptops: what reads sessions, traces and sources loads nothing that only Unix or Linux has."""

from __future__ import annotations

import lzma
import subprocess
import sys
from pathlib import Path

DATA = Path(__file__).parents[1] / "data"
HIDDEN = """
import runpy, sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name in {"fcntl", "grp", "pwd", "resource", "termios"}:
            raise ModuleNotFoundError(f"No module named {name!r}")
sys.meta_path.insert(0, Hidden())
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules.pop(name, None)
runpy.run_module("stepscope", run_name="__main__", alter_sys=True)
"""


def command(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A command of stepscope in a Python that has none of these modules."""
    return subprocess.run(
        [sys.executable, "-c", HIDDEN, *words], check=False, cwd=cwd, capture_output=True, text=True, timeout=120
    )


def test_what_reads_needs_only_files(tmp_path: Path) -> None:
    """Import traces, report one, compare, pack, check a file, and offer the pages: each as a laptop would."""
    (tmp_path / "train.py").write_text("import tensorflow as tf\n")
    for number, name in enumerate(("one", "two")):
        packed = DATA / "traced-ranks" / f"compute-rank{number}.json.xz"
        (tmp_path / f"{name}.json").write_bytes(lzma.decompress(packed.read_bytes()))
        made = command("import", f"{name}.json", "--output", f"{name}.stepscope", cwd=tmp_path)
        assert (tmp_path / f"{name}.stepscope").is_dir(), made.stderr
    for words in (
        ("report", "one.stepscope"),
        ("report", "one.stepscope", "--format", "json"),
        ("compare", "one.stepscope", "two.stepscope"),
        ("pack", "one.stepscope"),
        ("check", "train.py"),
        ("view", "--help"),
    ):
        done = command(*words, cwd=tmp_path)
        assert "No module named" not in done.stderr
        assert done.returncode == 0, (words, done.stderr)
