"""Patches are made, and applied by us as git does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.use_cases.fix import job, patches

LINES = st.lists(st.sampled_from(["a\n", "b\n", "\n", "-- x\n", "+ y\n", "@@ z\r\n", "\x0c\n"]), max_size=12).map(
    "".join
)


@settings(max_examples=25)
@given(LINES, LINES, st.sampled_from(["", "end"]))
def test_a_diff_leads_from_one_text_to_the_other(before: str, after: str, end: str) -> None:
    after += end
    made = patches.diff("train.py", before, after)
    hunks = patches.parts(made)
    assert patches.applied(before, hunks["train.py"]) == after if made else before == after


def test_git_applies_a_patch_of_several_files(tmp_path: Path) -> None:
    before = {str(tmp_path / "a.py"): b"x = 1\ny = 2\n", str(tmp_path / "in/b.py"): b"z = 3"}
    after = {name: data.replace(b"3", b"4").replace(b"1", b"5") for name, data in before.items()}
    for name, data in before.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(data)
    made = f"a table\n\n{patches.patch(tmp_path, before, after)}"
    done = subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=made, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {name: Path(name).read_bytes() for name in before} == after


def test_a_text_that_the_diff_was_not_made_of_is_refused() -> None:
    hunks = patches.parts(patches.diff("a.py", "x\ny\n", "x\nz\n"))["a.py"]
    with pytest.raises(patches.RefusedError, match="not what the run has seen"):
        patches.applied("x\nw\n", hunks)


@pytest.mark.parametrize(
    ("path", "data"), [("a.ipynb", b"{}"), ("a.py", "# -*- coding: latin-1 -*-\n\xe4".encode("latin-1"))]
)
def test_what_is_not_python_in_utf8_is_refused(path: str, data: bytes) -> None:
    with pytest.raises(patches.RefusedError):
        patches.text_of(path, data)


def test_only_what_can_be_edited_is_the_programs(tmp_path: Path) -> None:
    """A file in another encoding, or none at all, is left out, and links are followed."""
    (tmp_path / "a.py").write_text("x = 'ä'\r\n", encoding="utf-8", newline="")
    (tmp_path / "b.py").write_bytes(b"# -*- coding: latin-1 -*-\n\xe4")
    (tmp_path / "c.py").write_bytes(b"x = 1\ny = 2\nz = '\xe4'\n")
    (tmp_path / "d.py").symlink_to("a.py")
    names = [str(tmp_path / name) for name in ("b.py", "c.py", "d.py", "gone.py", "e.txt")]
    found = job.program(names, tmp_path, {}, "")
    assert found.texts == {str(tmp_path / "a.py"): "x = 'ä'\r\n".encode()}


def test_the_patch_begins_in_the_repository_or_the_working_directory(tmp_path: Path) -> None:
    files = [str(tmp_path / "p/a.py"), str(tmp_path / "p/q/b.py")]
    assert patches.base_of(files, tmp_path, tmp_path / "p") == tmp_path
    assert patches.base_of(files, None, tmp_path / "p") == tmp_path / "p"
    assert patches.base_of(files, None, tmp_path / "p/q") == tmp_path / "p"
