"""``stepscope check --fix``, ``--unsafe-fixes`` and ``--diff`` from the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.check.fixing.programs import CALL, FIRST, PIPELINE, SECOND, book

from stepscope.check.cli.check import check


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with a safe and an unsafe fix, in the working directory."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    path.write_text(PIPELINE)
    return path


def call(*args: str) -> Result:
    """Run the command; errors of ours are raised."""
    arguments = ["--target-version", "2.21", *args]
    return CliRunner().invoke(check, arguments, standalone_mode=False, catch_exceptions=False)


def test_fix(train: Path) -> None:
    """Only the safe fix is done and said, with what it changes; what is left is reported."""
    train.chmod(0o640)
    done = call("train.py", "--fix")
    text = train.read_text()
    assert f"map(augment).interleave(tf.data.Dataset.from_tensors, {CALL})" in text
    assert text.count(CALL) == 1
    assert train.stat().st_mode & 0o777 == 0o640
    assert done.return_value == 1
    assert done.stdout.startswith("train.py:6:34: TFD001 map runs augment")
    assert "fixed train.py:6: TFD001 Add num_parallel_calls=tf.data.AUTOTUNE. Elements keep their order" in done.stderr
    assert "1 warning, 1 fixed\n[*] 1 fixable with --fix --unsafe-fixes" in done.stderr


def test_fix_all(train: Path) -> None:
    """With unsafe fixes everything is done: exit code 0, and a second run does nothing."""
    done = call("train.py", "--fix", "--unsafe-fixes")
    assert (done.return_value, done.stdout) == (0, "")
    assert "nothing left, 2 fixed" in done.stderr
    first = train.read_bytes()
    again = call("train.py", "--fix", "--unsafe-fixes")
    assert again.return_value == 0
    assert "fixed" not in again.stderr
    assert train.read_bytes() == first


def test_unsafe_alone_writes_nothing(train: Path) -> None:
    """``--unsafe-fixes`` without ``--fix`` leaves the file as it is."""
    assert call("train.py", "--unsafe-fixes").return_value == 1
    assert train.read_text() == PIPELINE


def test_diff(train: Path) -> None:
    """The diff can be applied by patch, nothing is written, and the exit code says that something would change."""
    done = call("train.py", "--diff")
    assert done.return_value == 1
    assert train.read_text() == PIPELINE
    assert done.stdout.startswith("--- train.py\n+++ train.py\n@@ ")
    assert "would fix train.py:6: TFD001" in done.stderr
    assert "would fix 1 in 1 file" in done.stderr
    subprocess.run(["patch", "-p0"], input=done.stdout, text=True, check=True, capture_output=True)
    patched = train.read_text()
    train.write_text(PIPELINE)
    call("train.py", "--fix")
    assert train.read_text() == patched


def test_diff_of_nothing(train: Path) -> None:
    """Nothing to fix: an empty diff and exit code 0, though findings without a safe fix may be there."""
    train.write_text(PIPELINE.replace(".interleave(tf.data.Dataset.from_tensors)", ""))
    done = call("train.py", "--diff")
    assert (done.return_value, done.stdout) == (0, "")


def test_diff_of_a_notebook(train: Path) -> None:
    """A notebook's diff is that of its cells."""
    train.with_name("a.ipynb").write_bytes(book(FIRST, SECOND))
    done = call("a.ipynb", "--diff", "--unsafe-fixes")
    assert "--- a.ipynb:cell 3\n+++ a.ipynb:cell 3\n" in done.stdout
    assert done.stdout.count("\n+ds = ") == 1


def test_ignored_and_known_are_not_fixed(train: Path) -> None:
    """What a comment silences, or a baseline knows, is not fixed either."""
    train.write_text(PIPELINE.rstrip("\n") + "  # stepscope: ignore[TFD001]\n")
    assert call("train.py", "--diff", "--unsafe-fixes").stdout == ""
    train.write_text(PIPELINE)
    call("train.py", "--write-baseline", "known.json")
    done = call("train.py", "--fix", "--unsafe-fixes", "--baseline", "known.json")
    assert train.read_text() == PIPELINE
    assert done.return_value == 0


def test_refused_is_said(train: Path) -> None:
    """A fix that cannot be done is named with the reason."""
    train.write_text(PIPELINE.replace("\n", "\r"), newline="")
    done = call("train.py", "--fix")
    assert "train.py:6: TFD001 not fixed: libcst does not reproduce this file" in done.stderr
    assert done.return_value == 1


def test_json_counts_fixes(train: Path) -> None:
    """The JSON report says how many were fixed, and what a fix would do to the rest."""
    report = json.loads(call("train.py", "--fix", "--format", "json").stdout)
    assert report["fixed"] == 1
    (finding,) = report["findings"]
    assert finding["remedies"][0]["fix"] == "Add num_parallel_calls=tf.data.AUTOTUNE"
    assert finding["remedies"][0]["safety"] == "unsafe"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_cannot_write(train: Path, tmp_path: Path) -> None:
    """A file that cannot be written is named; exit code 2."""
    tmp_path.chmod(0o555)
    try:
        done = call("train.py", "--fix")
    finally:
        tmp_path.chmod(0o755)
    assert done.return_value == 2
    assert "nothing was fixed: it cannot be written" in done.stderr
    assert train.read_text() == PIPELINE


def test_plain_check_loads_no_libcst(train: Path) -> None:
    """Where nothing is fixed libcst is not loaded."""
    code = (
        "import sys; from stepscope.check.cli.check import check;"
        "check(['train.py'], standalone_mode=False); assert 'libcst' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=os.environ)
