"""The command ``whatif``: which words are its own, and what it hands to the use case."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from stepscope.cli.whatif import whatif
from stepscope.use_cases.whatif import command as use_case
from stepscope.use_cases.whatif.options import WhatIfOptions


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[WhatIfOptions]:
    """What the use case is asked for; nothing runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    given: list[WhatIfOptions] = []
    monkeypatch.setattr(use_case, "whatif", lambda options, _say: given.append(options))
    return given


def run(asked: list[WhatIfOptions], *words: str) -> WhatIfOptions:
    """Run the command."""
    done = CliRunner().invoke(whatif, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return asked[-1]


@pytest.mark.parametrize(
    ("words", "own"),
    [
        (("train.py", "--try", "graph", "--epochs", "2"), {"trials": ("graph",)}),
        (("train.py", "--epochs", "2", "--against=HEAD~1"), {"against": "HEAD~1"}),
        (("--against", "other.py", "train.py", "--epochs", "2"), {"against": "other.py"}),
        (
            ("train.py", "--until-done", "--epochs", "2", "--allow-changed-results"),
            {"until_done": True, "changed_results": True},
        ),
        (("train.py", "--epochs", "2", "--allow-network"), {"network": True}),
    ],
)
def test_our_options_may_follow_the_program(
    asked: list[WhatIfOptions], words: tuple[str, ...], own: dict[str, object]
) -> None:
    options = run(asked, *words)
    assert options.argv[1:] == ("train.py", "--epochs", "2")
    assert {name: getattr(options, name) for name in own} == own


@pytest.mark.parametrize("word", ["--resume", "--time", "--rounds", "--folder", "--whole", "--json"])
def test_options_that_programs_have_too_are_theirs_after_the_program(asked: list[WhatIfOptions], word: str) -> None:
    assert run(asked, "train.py", word, "3").argv[1:] == ("train.py", word, "3")


def test_after_two_dashes_everything_is_the_programs(asked: list[WhatIfOptions]) -> None:
    options = run(asked, "--", "python", "train.py", "--try", "a", "--until-done")
    assert options.argv == ("python", "train.py", "--try", "a", "--until-done")
    assert not options.until_done


def test_a_flag_with_a_value_is_the_programs(asked: list[WhatIfOptions]) -> None:
    assert run(asked, "train.py", "--until-done=5").argv[1:] == ("train.py", "--until-done=5")


def test_resuming_needs_no_program(asked: list[WhatIfOptions]) -> None:
    """Time and rounds that are not given are those of the experiment."""
    options = run(asked, "--resume", "a.whatif")
    assert (options.argv, options.resume, options.rounds, options.seconds) == ((), Path("a.whatif"), None, None)
    assert run(asked, "--resume", "a.whatif", "--time", "20m", "train.py").seconds == 1200.0
