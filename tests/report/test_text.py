"""The report in the terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, get_args

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from stepscope.report import checked_words, text, words
from stepscope.report import lines as breaking
from stepscope.tables.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from stepscope.model.report.report import Report

SESSION = "train-1121-0130.stepscope"
PAGE = f"{SESSION}/report.html"


@pytest.mark.parametrize("width", [80, 120])
def test_golden(report: Report, name: str, width: int, golden: Callable[[str, str], None]) -> None:
    """The text of every sample at two widths is as reviewed."""
    golden(f"{name}-{width}.txt", text.render(report, width=width, session_path=SESSION, html_path=PAGE))


@pytest.mark.parametrize("width", [60, 72, 80, 100, 120, 200])
def test_lines_fit(report: Report, width: int) -> None:
    """No line is wider than the terminal, and none ends in a blank."""
    for line in text.render(report, width=width, session_path=SESSION, html_path=PAGE).splitlines():
        assert cell_len(line) <= width
        assert line == line.rstrip()


def test_colour_changes_no_word(report: Report) -> None:
    """Colours only add control sequences."""
    plain = text.render(report, session_path=SESSION)
    coloured = text.render(report, session_path=SESSION, color=True)
    assert coloured != plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


@pytest.mark.parametrize("severity", get_args(Severity))
def test_every_severity_has_a_colour(severity: Severity) -> None:
    """Information that matters is listed as well, and has its own style."""
    assert breaking.paint((breaking.Piece(severity, severity),), color=True) != severity


def test_no_control_characters(report: Report) -> None:
    """A name from the session cannot send control sequences to the terminal."""
    shown = text.render(report).replace("\n", "")
    assert shown.isprintable()


def test_ten_lines(samples: ModuleType) -> None:
    """A usual report has about ten lines at 120 columns, and two for the pipeline stages."""
    lines = text.render(samples.input_bound(), session_path=SESSION, html_path=PAGE).splitlines()
    assert len(lines) <= 14


def test_nothing_found_gives_no_advice(samples: ModuleType) -> None:
    """A job with nothing wrong gets its breakdown and no remedy."""
    shown = text.render(samples.clean())
    assert "nothing significant found" in shown
    assert "compute 89 %" in shown
    assert "remedy" not in shown


@pytest.mark.parametrize("beside", [True, False])
def test_the_load_of_the_machine_stands_in_the_head(samples: ModuleType, *, beside: bool) -> None:
    """Once, and the other findings stand as if it were not there; where it is all that was found, it is the finding."""
    report = samples.input_bound()
    first = report.findings[0]
    load = replace(first, code="CFG001", title="other processes take 1 of 2 CPUs (archive.py)", where=(), remedies=())
    shown = text.render(replace(report, findings=(first, load) if beside else (load,)))
    assert shown.count("other processes take 1 of 2 CPUs") == 1
    head, listed = shown[: shown.index("\n\n")], shown[shown.index("\n\n") :]
    assert ("machine     other processes take" in head) == beside
    assert ("CFG001" in listed) != beside


def test_infos_are_named(samples: ModuleType) -> None:
    """Findings of level info have a line of title and place, without cost and remedy; what is too much is counted."""
    shown = text.render(samples.eight())
    assert "\n+ 1 more\n" in shown
    assert "\n  info    HST009  one slow step (train.py:24 make_dataset)\n" in shown
    many = replace(samples.eight(), findings=7 * samples.eight().findings)
    assert "more \u00b7 + 8 info" in text.render(many)


def test_what_only_the_source_shows_is_one_line(samples: ModuleType) -> None:
    """Static findings without a measured cost are counted in one line with a command, and none of them is named."""
    shown = text.render(samples.from_source(), width=200)
    (line,) = [line for line in shown.splitlines() if line.startswith("source")]
    assert "3 static findings on lines not seen in this run" in line
    assert line.endswith("stepscope check train.py 'tools/a `b`.py'")
    assert "KER001" not in shown
    assert "source  " not in text.render(samples.input_bound())


def test_the_edit_of_a_joined_finding_stands_below_the_advice(samples: ModuleType) -> None:
    """What the checker can change is said with the command that shows it, after what the detector advises."""
    shown = text.render(samples.from_source(), width=200)
    assert shown.index("remedy: give the map num_parallel_calls") < shown.index("edit: add num_parallel_calls")
    assert "train.py:26: stepscope check --diff --unsafe-fixes --select TFD001 train.py\n" in shown


def test_blind_is_not_clear(samples: ModuleType) -> None:
    """A detector that could not look is told apart from one that saw nothing."""
    shown = text.render(samples.no_series())
    assert "2 could not decide: 1 has no tf.data live model (TensorFlow 2.17 or" in shown
    assert "1 failed: HST006" in shown


@pytest.mark.parametrize(
    ("sentence", "width", "lines"),
    [
        ("a bb ccc", 4, ["a bb", "ccc"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        ("", 5, []),
        ("\u5b57\u5b57\u5b57", 4, ["\u5b57\u5b57", "\u5b57"]),
        ("ab \u5b57\u5b57", 3, ["ab", "\u5b57", "\u5b57"]),
    ],
)
def test_wrap(sentence: str, width: int, lines: list[str]) -> None:
    """Lines break at blanks; words that are too long, and wide characters, are cut to fit."""
    assert breaking.wrap(sentence, width) == lines


def test_root_reason_first(samples: ModuleType) -> None:
    """Detectors that miss several signals are counted under the one that most of them miss."""
    from stepscope.tables.findings import Checked

    def blind(*missing: str, hint: str) -> Checked:
        return Checked(detector="X", name="x", outcome="not-applicable", missing=missing, hint=hint)

    rows = [blind("samples", "steps", hint="a"), blind("steps", hint="b"), blind("host", "steps", hint="c")]

    def said(*given: Checked) -> list[str]:
        return [reason.text for reason in checked_words.blind_reasons(given)]

    assert said(*rows) == ["no steps (b)"]
    assert said(*rows, blind("host", hint="d")) == ["no steps (b)", "no host (d)"]
    assert said(*rows[:1]) == ["no samples"]


@pytest.mark.parametrize(("ratio", "times"), [(0.0, "1.0"), (0.58, "2.4"), (0.9, "10"), (0.99, "100"), (1.0, "100")])
def test_speedup(ratio: float, times: str) -> None:
    """The predicted gain is bounded and has two digits."""
    assert words.speedup_text(ratio) == times


def test_the_command_that_helps_most() -> None:
    """Of several reasons the line names the one that a command would decide, and where the others are listed."""
    from stepscope.tables.findings import Checked

    def blind(code: str, missing: str, hint: str) -> Checked:
        return Checked(detector=code, name="x", outcome="undecided", missing=(missing,), hint=hint)

    rows = [blind("A1", "op trace", "run stepscope trace JOB --kind ops while it runs")]
    rows += [blind(code, "memory", "the steady part must last 8 s; or more") for code in ("B1", "B2")]
    short = checked_words.checked_short(rows)
    reason = "no op trace (stepscope trace JOB --kind ops)"
    assert short == f"0 clear \u00b7 3 could not decide: 1 has {reason}; 1 more reason: -v"
    assert checked_words.checked_long(rows) == [
        "0 clear",
        "2 could not decide: no memory (the steady part must last 8 s; or more): B1, B2",
        "1 could not decide: no op trace (run stepscope trace JOB --kind ops while it runs): A1",
    ]
