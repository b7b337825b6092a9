"""The judge of public fixes: what it counts as seen, and, where clones are at hand, how many of them are."""

import subprocess
from pathlib import Path

import pytest

import _clones
import known_fixes
from known_fixes import Row

SLOW = """import tensorflow as tf


def augment(image):
    return tf.image.random_flip_left_right(image)


def unrelated():
    return 1


def batches(images):
    data = tf.data.Dataset.from_tensor_slices(images)
    data = data.map(augment)
    return data.batch(32)
"""
FIXED = SLOW.replace("map(augment)", "map(augment, num_parallel_calls=tf.data.AUTOTUNE)")
ELSEWHERE = SLOW.replace("return 1", "return 2")


def git(folder: Path, *words: str) -> str:
    """Run git in a folder, as nobody in particular."""
    done = subprocess.run(
        ["git", "-c", "user.name=x", "-c", "user.email=x@x", "-C", str(folder), *words],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture
def clones(tmp_path: Path) -> Path:
    """A folder with a clone of ``someone/project``: a slow commit, a fixed one, and one that changed something else."""
    project = tmp_path / "someone+project"
    project.mkdir()
    git(project, "init", "-q")
    for text, tag in ((SLOW, "slow"), (FIXED, "fixed"), (ELSEWHERE, "elsewhere")):
        (project / "data file.py").write_text(text)
        git(project, "add", "-A")
        git(project, "commit", "-q", "-m", tag)
        git(project, "tag", tag)
    return tmp_path


def row(before: str = "slow", after: str = "fixed", rule: str = "TD01", repo: str = "someone/project") -> Row:
    """A line of the list."""
    return Row(repo=repo, rule=rule, before=before, after=after, file="data file.py")


def test_a_fix_that_is_seen_passes(clones: Path) -> None:
    """The changed line is reported before the fix and not after it."""
    verdict = known_fixes.judge(clones, row())
    assert verdict.passed
    assert (verdict.before, verdict.after, verdict.note) == (("TFD001:14",), (), "line")


def test_a_finding_elsewhere_does_not_count(clones: Path) -> None:
    """A change of other lines, with the same finding before and after, is not seen."""
    verdict = known_fixes.judge(clones, row("slow", "elsewhere"))
    assert verdict.passed is False


def test_the_same_finding_after_does_not_count(clones: Path) -> None:
    """Backwards, from fixed to slow, nothing is reported before."""
    verdict = known_fixes.judge(clones, row("fixed", "slow"))
    assert verdict.passed is False
    assert verdict.note == "silent"


def test_a_rejected_report_must_be_silent(clones: Path) -> None:
    """The line of a rejected report passes only where nothing is said."""
    assert known_fixes.judge(clones, row("slow", "", "NEG")).passed is False
    assert known_fixes.judge(clones, row("fixed", "", "NEG")).passed is True


def test_a_report_on_something_else_was_not_rejected(clones: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is known what was rejected, other rules may speak: shown, and not counted."""
    monkeypatch.setattr(known_fixes, "REJECTED", {"someone/project@slow": frozenset({"TFD002"})})
    verdict = known_fixes.judge(clones, row("slow", "", "NEG"))
    assert (verdict.passed, verdict.note) == (True, "silent about TFD002")
    assert verdict.before == ("TFD001:14",)
    monkeypatch.setattr(known_fixes, "REJECTED", {"someone/project@slow": frozenset({"TFD001"})})
    assert known_fixes.judge(clones, row("slow", "", "NEG")).passed is False


def test_an_open_report_is_only_told(clones: Path) -> None:
    """A report without a fix says whether it fires, and counts for nothing."""
    verdict = known_fixes.judge(clones, row("slow", ""))
    assert (verdict.passed, verdict.note) == (None, "fires")


def test_out_of_reach_is_said(clones: Path) -> None:
    """No folder, no clone, no commit: skipped, each with its reason."""
    assert "no folder" in known_fixes.judge(None, row()).note
    assert "no clone" in known_fixes.judge(clones, row(repo="someone/else")).note
    assert "has no 1234567" in known_fixes.judge(clones, row("1234567")).note


@pytest.mark.parametrize("layout", ["someone/project", "someone__project", "project", "someone+project/repo"])
def test_clones_lie_in_many_ways(clones: Path, layout: str, tmp_path: Path) -> None:
    """A clone is found by any usual name of its folder."""
    other = tmp_path / "other"
    (other / layout).parent.mkdir(parents=True)
    git(tmp_path, "clone", "-q", "--bare", str(clones / "someone+project"), str(other / layout))
    clone = _clones.find(other, "someone/project")
    assert clone is not None
    assert clone.files("slow") == ["data file.py"]


def test_hunks_are_the_changed_lines(clones: Path) -> None:
    """A fix's lines, on both sides, without context."""
    clone = _clones.find(clones, "someone/project")
    assert clone is not None
    assert clone.hunks("slow", "fixed", "data file.py") == {"data file.py": [_clones.Hunk(old=(14, 1), new=(14, 1))]}


def test_a_file_is_named_by_its_end(clones: Path) -> None:
    """A path that is only the end of one file's path means that file."""
    project = clones / "someone+project"
    (project / "deep" / "inner").mkdir(parents=True)
    (project / "deep" / "inner" / "one.py").write_text("")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "deep")
    clone = _clones.find(clones, "someone/project")
    assert clone is not None
    assert clone.resolve("HEAD", "inner/one.py") == "deep/inner/one.py"
    assert clone.resolve("HEAD", "deep") == "deep"
    assert clone.resolve("HEAD", "absent.py") == "absent.py"


@pytest.mark.slow
def test_public_fixes_are_seen() -> None:
    """Of the public fixes at least the goal is seen, and rejected reports are silent."""
    folder = _clones.folder_of_clones()
    if folder is None:
        pytest.skip(f"no folder of clones: ${_clones.VARIABLE}")
    if not known_fixes.LIST.exists():
        pytest.skip("the list of public fixes is not there")
    verdicts = [known_fixes.judge(folder, one) for one in known_fixes.rows(known_fixes.LIST)]
    done = [v for v in verdicts if v.row.kind == "pair" and v.passed is not None]
    if len(done) < known_fixes.GOAL:
        pytest.skip(f"only {len(done)} of the fixes are in reach")
    assert sum(bool(v.passed) for v in done) >= known_fixes.GOAL - (19 - len(done))
    assert [v.row.repo for v in verdicts if v.row.kind == "rejected" and v.passed is False] == []
