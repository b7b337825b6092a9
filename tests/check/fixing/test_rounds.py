"""Fixes of whole files: rounds, notebooks, encodings, writing."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from tests.check.fixing.planning import fix_files, fixed_by
from tests.check.fixing.programs import CALL, FIRST, PIPELINE, SECOND, book

from stepscope.check.fixing.edits import CannotFixError
from stepscope.check.fixing.files import write


def test_chain_in_one_go() -> None:
    """Two keywords of one chain are added, and the rule is silent afterwards."""
    done = fixed_by(PIPELINE, "TFD001")
    assert done.splitlines()[-1] == (
        f"ds = tf.data.Dataset.range(9000).map(augment, {CALL}).interleave(tf.data.Dataset.from_tensors, {CALL})"
    )
    assert done.splitlines()[:-1] == PIPELINE.splitlines()[:-1]


def test_safe_alone() -> None:
    """Without leave for unsafe fixes only the safe one is done."""
    outcome = fix_files({"main.py": PIPELINE.encode()}, unsafe=False)
    text = outcome.contents["main.py"].decode()
    assert f"map(augment).interleave(tf.data.Dataset.from_tensors, {CALL})" in text
    assert [f.plan.safety for f in outcome.done] == ["safe"]
    assert [h.code for h in outcome.hits["main.py"]] == ["TFD001"]


@pytest.mark.parametrize(
    ("ending", "encoding", "head"),
    [
        ("\r\n", "utf-8", ""),
        ("\n", "utf-8-sig", ""),
        ("\r\n", "utf-8-sig", ""),
        ("\n", "latin-1", "# -*- coding: latin-1 -*-\n"),
        ("\n", "cp1251", "# vim: set fileencoding=cp1251 :\n"),
    ],
)
def test_bytes_stay(ending: str, encoding: str, head: str) -> None:
    """Line endings, byte-order mark and encoding of a file stay; nothing but the fix changes."""
    letters = "д" if encoding == "cp1251" else "é"
    text = (head + PIPELINE.replace("noise", f"noise {letters}")).replace("\n", ending)
    outcome = fix_files({"main.py": text.encode(encoding)})
    after = outcome.contents["main.py"].decode(encoding)
    assert after.replace(f", {CALL}", "") == text
    assert outcome.contents["main.py"].startswith(b"\xef\xbb\xbf") == (encoding == "utf-8-sig")


def test_not_given_back() -> None:
    """A file that libcst does not give back letter for letter (line endings of old Macs) is left alone."""
    outcome = fix_files({"main.py": PIPELINE.replace("\n", "\r").encode()})
    assert outcome.contents == {}
    assert {f.refused for f in outcome.refused} == {"libcst does not reproduce this file"}


def test_import_added_once() -> None:
    """Several fixes that need the same import add one."""
    text = """\
        from tensorflow.data import Dataset

        a = Dataset.list_files("*.x").interleave(Dataset.from_tensors)
        b = Dataset.list_files("*.y").interleave(Dataset.from_tensors)
        """
    done = fixed_by(text, "TFD001")
    assert done.splitlines()[:2] == ["from tensorflow.data import Dataset", "import tensorflow as tf"]
    assert done.count("import tensorflow as tf") == 1
    assert done.count(CALL) == 2


@pytest.mark.parametrize("as_list", [True, False])
@pytest.mark.parametrize("indent", [None, 1, 4])
def test_notebook(*, as_list: bool, indent: int | None) -> None:
    """In a notebook only the source of the cell changes, byte for byte, in the layout that it has."""
    data = book(FIRST, f"%matplotlib inline\n{SECOND}", as_list=as_list, indent=indent)
    outcome = fix_files({"a.ipynb": data})
    assert outcome.contents["a.ipynb"].decode().replace(f", {CALL}", "") == data.decode()
    assert outcome.contents["a.ipynb"].decode().count(CALL) == 2


def test_notebook_magic() -> None:
    """A line with a magic is not touched, and the reason is said."""
    line = "ds = tf.data.Dataset.list_files('*').interleave(tf.data.Dataset.from_tensors)"
    outcome = fix_files({"a.ipynb": book(FIRST, f"%time {line}")})
    assert outcome.contents == {}
    assert [f.refused for f in outcome.refused] == ["the place holds a magic"]


def test_overlapping_fixes_take_rounds() -> None:
    """A fix inside of another one's range is done in the next round."""
    text = """\
        import tensorflow as tf

        @tf.function
        def step(x, a, b):
            return x * a * b

        for n in range(100):
            step(tf.ones([2]), n, float(n))
        """
    done = fixed_by(text, "TFF001")
    number = "tf.constant({}, dtype=tf.float32)"
    assert done.splitlines()[-1] == f"    step(tf.ones([2]), {number.format('n')}, {number.format('float(n)')})"


def test_write(tmp_path: Path) -> None:
    """A file is replaced as a whole: its mode stays, a link stays a link, nothing else is left behind."""
    target = tmp_path / "real.py"
    target.write_bytes(b"old")
    target.chmod(0o751)
    link = tmp_path / "link.py"
    link.symlink_to("real.py")
    write(link, b"new", old=b"old")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o751
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.py", "real.py"]


def test_write_changed(tmp_path: Path) -> None:
    """A file that somebody else has changed meanwhile is left alone."""
    target = tmp_path / "real.py"
    target.write_bytes(b"theirs")
    with pytest.raises(CannotFixError, match="changed in the meantime"):
        write(target, b"new", old=b"old")
    assert target.read_bytes() == b"theirs"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_write_refused(tmp_path: Path) -> None:
    """A folder that cannot be written leaves the file as it was."""
    target = tmp_path / "real.py"
    target.write_bytes(b"old")
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(CannotFixError, match="cannot be written"):
            write(target, b"new", old=b"old")
    finally:
        tmp_path.chmod(0o755)
    assert target.read_bytes() == b"old"
