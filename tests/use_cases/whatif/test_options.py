"""What is asked of an experiment: what is refused, what is resumed, and when runs of before do not count."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from stepscope.tables.errors import UsageError
from stepscope.use_cases.whatif import options, state
from stepscope.use_cases.whatif.options import WhatIfOptions

WANTED = WhatIfOptions(argv=("python", "train.py"), trials=("graph",))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a script."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("pass\n")
    return tmp_path


def begin(wanted: WhatIfOptions) -> tuple[Path, state.State]:
    """Begin or resume an experiment as the command does."""
    wanted = options.resumed(wanted)
    return options.begun(wanted, options.asked(wanted, wanted.against))


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (replace(WANTED, rounds=2), "--rounds 2: an interval needs 3"),
        (replace(WANTED, trials=("nothing",)), "no intervention 'nothing'"),
        (replace(WANTED, until_done=True, against="a.py"), "another program cannot be kept"),
        (replace(WANTED, until_done=True, trials=("graph", "threads")), "threads is a curve"),
        (replace(WANTED, changed_results=True), "only --until-done keeps anything"),
    ],
)
def test_what_is_refused(wanted: WhatIfOptions, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        options.check(wanted)


def test_curves_are_those_without_a_number() -> None:
    wanted = replace(WANTED, trials=("batch", "batch:4", "threads", "batch"))
    options.check(wanted)
    assert (wanted.curves, wanted.singles) == (("batch", "threads"), ("batch:4",))


def test_until_done_has_more_time() -> None:
    """A step takes as long as a whole experiment; what is given counts for both."""
    assert replace(WANTED, until_done=True).most_s >= 3 * WANTED.most_s
    assert replace(WANTED, until_done=True, seconds=60.0).most_s == 60.0


def test_an_experiment_is_resumed_with_what_was_asked_for(project: Path) -> None:
    """The folder alone is enough; time and rounds may be raised."""
    folder, begun = begin(replace(WANTED, until_done=True, rounds=4, folder=project / "tried"))
    state.write(folder, msgspec.structs.replace(begun, runs=(_run(),)))
    wanted = options.resumed(WhatIfOptions(argv=(), resume=Path("tried"), rounds=7))
    assert (wanted.argv, wanted.trials, wanted.until_done) == (WANTED.argv, ("graph",), True)
    assert (wanted.most_rounds, wanted.most_s) == (7, 900.0)
    again, resumed = begin(WhatIfOptions(argv=(), resume=Path("tried")))
    assert (again, resumed.runs) == (folder, (_run(),))


def test_the_same_command_with_the_folder_resumes_it(project: Path) -> None:
    folder, begun = begin(replace(WANTED, folder=project / "tried"))
    state.write(folder, msgspec.structs.replace(begun, runs=(_run(),)))
    assert begin(replace(WANTED, folder=Path("tried")))[1].runs == (_run(),)


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (replace(WANTED, trials=("xla-on",)), "do not count with another --try"),
        (replace(WANTED, until_done=True), "do not count with another --until-done"),
        (replace(WANTED, whole=True), "do not count with another --whole"),
        (replace(WANTED, argv=("python", "other.py")), "its experiment is on another command: python train.py"),
    ],
)
def test_runs_of_another_experiment_do_not_count(project: Path, wanted: WhatIfOptions, error: str) -> None:
    begin(replace(WANTED, folder=project / "tried"))
    with pytest.raises(UsageError, match=error):
        begin(replace(wanted, resume=Path("tried")))


def test_runs_of_a_script_that_has_changed_do_not_count(project: Path) -> None:
    begin(replace(WANTED, folder=project / "tried"))
    (project / "train.py").write_text("import time\n")
    with pytest.raises(UsageError, match="the script, which has changed since"):
        begin(WhatIfOptions(argv=(), resume=Path("tried")))


def test_secrets_of_the_command_line_are_not_kept(project: Path) -> None:
    """They are given again, and then the experiment is resumed."""
    argv = ("python", "train.py", "--api-key", "abc123secret")
    folder, _ = begin(replace(WANTED, argv=argv, folder=project / "tried"))
    assert "abc123secret" not in (folder / state.NAME).read_text()
    with pytest.raises(UsageError, match="secrets of its command line are not kept; give it again"):
        begin(WhatIfOptions(argv=(), resume=Path("tried")))
    assert begin(WhatIfOptions(argv=argv, resume=Path("tried")))[0] == folder


@pytest.mark.parametrize(("text", "error"), [(None, "no experiment is in it"), ("{", "cannot be read")])
def test_a_folder_without_an_experiment(project: Path, text: str | None, error: str) -> None:
    (project / "tried").mkdir()
    if text is not None:
        (project / "tried" / state.NAME).write_text(text)
    with pytest.raises(UsageError, match=error):
        begin(WhatIfOptions(argv=(), resume=Path("tried")))


def _run() -> state.MadeRun:
    return state.MadeRun(stage="", round=1, kept=(), trial="graph", wall_s=8.0, session="1-graph.stepscope")
