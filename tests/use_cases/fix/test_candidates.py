"""Which edits a run suggests, and in which order."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace
from tests.report.samples import clean, finding

from stepscope.model.report.input_bound import InputBound, InputEdit
from stepscope.tables.place import Place
from stepscope.use_cases.fix import candidates, patches
from stepscope.use_cases.fix.candidates import Program

TEXT = (Path(__file__).with_name("program.txt")).read_text(encoding="utf-8")
EDITED = TEXT.replace(".batch(32).prefetch(2)", ".batch(32).cache().prefetch(2)")


def program(tmp_path: Path, text: str = TEXT) -> Program:
    return Program(texts={str(tmp_path / "train.py"): text.encode()}, cwd=tmp_path, version="2.20")


def bound(*kinds: str) -> InputBound:
    """The prediction of the part Input, with its diff."""
    edits = tuple(
        InputEdit(kind=kind, text=kind, file="train.py", line=13, per_s=200.0, binds="step") for kind in kinds
    )
    return InputBound(
        text="", unit="samples", now_per_s=100.0, best_per_s=200.0, without_cache_per_s=100.0, binds="step", cores=2.0,
        step_ns=1, step_cpu_ns=1, memory_bytes=0.0, edits=edits, diff=patches.diff("train.py", TEXT, EDITED),
    )  # fmt: skip


def test_edits_of_the_chain_are_those_of_findings_about_the_input(tmp_path: Path) -> None:
    """Before what the checker alone sees, and with the class of the weakest of them."""
    report = replace(
        clean(),
        findings=(finding("INP001", where=(Place(file="train.py", line=13),)),),
        input_bound=bound("prefetch", "cache"),
    )
    found, questions = candidates.of_run(report, program(tmp_path))
    chain = next(one for one in found if one.code == "input")
    assert (chain.kind, chain.title, chain.line) == ("results", "prefetch, then cache", 13)
    assert chain.texts == {str(tmp_path / "train.py"): EDITED.encode()}
    assert [one.code for one in found] == ["INP001", "input", "KER001", "TFD010"]
    assert questions == []


def test_a_diff_of_another_text_is_no_edit(tmp_path: Path) -> None:
    report = replace(clean(), input_bound=bound("cache"))
    found, _ = candidates.of_run(report, program(tmp_path, TEXT.replace("prefetch(2)", "prefetch(3)")))
    assert "input" not in {one.code for one in found}


def test_a_finding_without_an_edit_is_a_question(tmp_path: Path) -> None:
    """If it costs enough."""
    report = replace(clean(), findings=(finding("INP003"), finding("HST001", ratio=0.01)))
    _, questions = candidates.of_run(report, program(tmp_path))
    assert [(one.code, one.file, one.line) for one in questions] == [("INP003", "train.py", 24)]
    assert "Possible here: write the generator as tf.data ops" in questions[0].text


def test_an_edit_is_known_again_whatever_else_is_edited(tmp_path: Path) -> None:
    one = program(tmp_path)
    other = program(tmp_path, f"# a line more\n{TEXT}")
    keys = [{found.key(now) for found in candidates.of_run(None, now)[0]} for now in (one, other)]
    assert len(keys[0]) == 3
    assert keys[0] == keys[1]
