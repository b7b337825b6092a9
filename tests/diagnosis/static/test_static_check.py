"""The static checker over a session's sources: which version, which files, and what is left out."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.derive.sessions import CWD, MS, SCRIPT, Job
from tests.detectors.jobs import train_loop

from stepscope.check.source import versions
from stepscope.cli.main import cli
from stepscope.diagnosis import analyze
from stepscope.diagnosis.static import static_check
from stepscope.diagnosis.static.static_check import StaticCheck, check, command, target_of
from stepscope.model.report.report import SourceCheck

MAP = """\
import tensorflow as tf

def augment(image):
    return tf.image.random_flip_left_right(image)

images = tf.data.Dataset.from_tensor_slices(tf.zeros([512, 8, 8, 3]))
batches = (
    images
    .map(augment)
    .batch(32)
)
"""
STATELESS = MAP.replace("random_flip_left_right", "flip_left_right")


def job(sources: dict[str, str], tensorflow: str = "2.21.0") -> Job:
    """A loop with these sources."""
    made = train_loop(20 * MS)
    made.sources = sources
    made.framework("tensorflow" if tensorflow else "numpy", tensorflow or "2.3.0")
    return made


def checked(made: Job, *order: str) -> StaticCheck:
    """What the checker says; there must be something to check."""
    result = check(made.view(), order)
    assert result is not None
    return result


def test_the_jobs_version_decides() -> None:
    """A stateless map runs in parallel since TensorFlow 2.7; the job's own version is asked."""
    assert [h.hit.code for h in checked(job({SCRIPT: MAP})).hits] == ["TFD001"]
    assert [h.hit.code for h in checked(job({SCRIPT: STATELESS})).hits] == []
    assert [h.hit.code for h in checked(job({SCRIPT: STATELESS}, "2.6.5")).hits] == ["TFD001"]


def test_hits_stand_where_a_running_program_shows_them() -> None:
    """A stage of a chain over several lines stands at its name."""
    (found,) = checked(job({SCRIPT: MAP})).hits
    assert (found.hit.span.line, found.hit.span.end_line) == (9, 9)


@pytest.mark.parametrize(
    ("frameworks", "expected"),
    [
        ({"tensorflow": "2.15.1", "keras": "2.15.0"}, ((2, 15), 2)),
        ({"tensorflow": "2.21.0", "keras": "3.15.1"}, ((2, 21), 3)),
        ({"tensorflow": "2.21.0", "tf_keras": "2.21.0"}, ((2, 21), 2)),
        ({"tensorflow": "2.21.0"}, ((2, 21), 3)),
        ({"tensorflow": "1.15.5"}, ((1, 15), 2)),
        ({"keras": "3.15.1"}, (versions.NEWEST, 3)),
        ({"numpy": "2.0"}, None),
        ({}, None),
    ],
)
def test_versions(frameworks: dict[str, str], expected: tuple[tuple[int, int], int] | None) -> None:
    """TensorFlow and Keras as the job imported them; without either there is nothing to check for."""
    target = target_of(frameworks)
    assert (target and (target.tensorflow, target.keras)) == expected


def test_imports_between_the_sources_are_followed() -> None:
    """The session's files are one project: a function in another file is known."""
    library = "import tensorflow as tf\ndef augment(x):\n    return tf.image.random_flip_left_right(x)\n"
    script = "import tensorflow as tf\nfrom lib import augment\ntf.data.Dataset.list_files('*').map(augment)\n"
    result = checked(job({SCRIPT: script, f"{CWD}/lib.py": library}))
    assert [(h.hit.code, h.hit.span.path) for h in result.hits] == [("TFD001", SCRIPT)]
    assert (result.files, result.lines) == (2, 6)


def test_nothing_to_check() -> None:
    """No sources (--no-sources), or no framework: no check, which is not the same as nothing found."""
    assert check(job({}).view(), ()) is None
    assert check(job({SCRIPT: MAP}, "").view(), ()) is None
    assert analyze.report_of(job({}).session()).source_check is None


def test_what_cannot_be_read_is_said() -> None:
    """A file of Python 2 is left out with the reason; the others are checked."""
    result = checked(job({SCRIPT: MAP, f"{CWD}/old.py": "print 'x'\n"}))
    assert [h.hit.code for h in result.hits] == ["TFD001"]
    (left,) = result.left_out
    assert left.startswith(f"{CWD}/old.py: ")
    assert result.files == 1


def test_large_projects_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that steps spend time in come first; what is beyond the bound is named."""
    monkeypatch.setattr(static_check, "MAX_LINES", 20)
    sources = {f"{CWD}/{name}.py": MAP for name in "abc"}
    result = checked(job(sources), f"{CWD}/c.py")
    assert [h.hit.span.path for h in result.hits] == [f"{CWD}/c.py"]
    assert result.lines == 11
    assert result.left_out == tuple(
        f"{CWD}/{n}.py: skipped, its 11 lines exceed the 20 that a report checks" for n in "ab"
    )


def test_time_is_bounded() -> None:
    """No file is begun after the time is over, and those that were not are named."""
    now = iter([0.0, 0.1, 10.0, 10.0])
    sources = {f"{CWD}/{name}.py": MAP for name in "abc"}
    result = check(job(sources).view(), (), clock=lambda: next(now))
    assert result is not None
    assert len(result.hits) == 1
    assert result.left_out == tuple(f"{CWD}/{name}.py: skipped, time limit reached" for name in "bc")


def test_a_failing_checker_costs_no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was measured is reported all the same, and that the sources could not be checked."""

    def fail(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(static_check, "check", fail)
    report = analyze.report_of(job({SCRIPT: MAP}).session())
    assert report.source_check is None
    assert [d.text for d in report.diagnostics if d.code == "DX075"] == [
        "the static check of the sources failed: RuntimeError: broken"
    ]


def test_a_report_says_what_only_the_source_shows() -> None:
    """A pattern on a line that nothing measured is info, apart from the findings, with the command that shows it."""
    made = job({SCRIPT: MAP})
    report = analyze.report_of(made.session())
    assert {finding.code[:3] for finding in report.findings} == {"GEN"}  # where time goes, without a cost
    said = report.source_check
    assert isinstance(said, SourceCheck)
    assert (said.tensorflow, said.files, said.lines, said.not_shown, said.left_out) == ("2.21", 1, 11, 0, ())
    assert said.command == "stepscope check --show-info train.py"
    (finding,) = said.findings
    assert (finding.code, finding.severity, finding.seen, finding.origin) == ("TFD001", "info", False, "static")
    assert (finding.where[0].file, finding.where[0].line) == ("train.py", 9)


def test_a_stage_that_was_made_is_seen() -> None:
    """tf.data's construction line makes the stage's line a seen one."""
    made = job({SCRIPT: MAP})
    made.dataset("MapDataset", line=9)
    said = analyze.report_of(made.session()).source_check
    assert said is not None
    assert [f.seen for f in said.findings] == [True]


def test_the_command_names_files_or_the_folder_around_them() -> None:
    """Up to three files by name, more by their folder; the version where it is not the newest."""
    made = job({f"{CWD}/models/{name} x.py": MAP for name in "abcd"}, "2.15.1")
    result = checked(made)
    said = analyze.report_of(made.session()).source_check
    assert said is not None
    found = said.findings
    assert command(result.target, found) == "stepscope check --show-info --target-version 2.15 models"
    assert command(result.target, found[:1]) == "stepscope check --show-info --target-version 2.15 'models/a x.py'"
    assert command(versions.Target(), ()) == ""


@pytest.mark.parametrize(
    ("tensorflow", "edit"),
    [
        ("2.21.0", "stepscope check --diff --unsafe-fixes --select TFD001 train.py"),
        ("2.15.1", "stepscope check --diff --unsafe-fixes --target-version 2.15 --select TFD001 train.py"),
    ],
)
def test_the_edit_is_for_the_jobs_version(tensorflow: str, edit: str) -> None:
    """The command that shows the edit looks with the eyes of the report."""
    (hit,) = checked(job({SCRIPT: MAP}, tensorflow)).hits
    assert hit.edit == edit


def test_the_commands_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a report tells people to type is a command of ours, and shows what the report speaks of."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(MAP)
    said = analyze.report_of(job({SCRIPT: MAP}).session()).source_check
    assert said is not None
    edit = said.findings[0].remedies[0].edit
    assert edit is not None
    for typed, shown in ((said.command, "TFD001"), (edit, "+    .map(augment, num_parallel_calls=tf.data.AUTOTUNE)")):
        name, *arguments = shlex.split(typed)
        assert name == "stepscope"
        assert shown in CliRunner().invoke(cli, arguments).output
