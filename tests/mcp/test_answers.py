"""The answers of the four tools, without a client: what is in them, how large they are, and what never is."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings

from stepscope.mcp import answers, fitting, refusals, tools
from stepscope.mcp.handles import Handles
from stepscope.tables.errors import StepscopeError, UsageError

from .hostile import MARK, PIECES, TEXTS, Foreign, leaks
from .sessions import starving, with_ops

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
SLOW = (ROOT / "bench" / "rules" / "TFD001" / "slow.py").read_text(encoding="utf-8")


@pytest.fixture(scope="module", name="handles")
def _handles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Handles]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        handles = Handles()
        yield handles
        handles.close()


@pytest.fixture(scope="module", name="session")
def _session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return starving(tmp_path_factory.mktemp("at-rest") / "slow.stepscope")


def _asked(answer: bytes) -> Foreign:
    return msgspec.json.decode(answer)


def test_a_first_answer_has_place_cost_remedy_and_proof(handles: Handles, session: Path) -> None:
    """In 2 kB: what a coding agent needs to change the code and to prove it."""
    answer = answers.diagnose(handles, tools.Diagnose(session=str(session)))
    assert len(answer) <= fitting.FIRST_BYTES
    said = _asked(answer)
    (first, *_) = said["findings"]
    assert first["code"].startswith("INP")
    assert first["where"] == {"untrusted_file": "train.py", "line": 3, "untrusted_function": "make_dataset"}
    assert first["cost"]["low"] <= first["cost"]["ratio"] <= first["cost"]["high"]
    assert first["untrusted_remedy"]
    assert said["step"]["count"] == 60
    whole = _asked(answers.diagnose(handles, tools.Diagnose(session=said["session"], finding=first["finding"])))
    assert whole["code"] == first["code"]
    assert whole["evidence"]


def test_a_handle_looks_where_the_finding_points(handles: Handles, session: Path) -> None:
    """Its source, the slowest step, and what the timeline holds."""
    key = handles.handle(str(session))
    source = _asked(answers.look(handles, tools.Look(what="source", session=key, file="train.py", line=3)))
    assert source["untrusted_lines"][0] == "rows = rows.map(load)"
    assert _asked(answers.look(handles, tools.Look(what="step", step="5", session=key)))["steps"][0]["median_ns"] > 0
    rows = _asked(answers.look(handles, tools.Look(what="timeline", session=key)))["rows"]
    assert {"load", "train_step"} & {row["untrusted_text"] for row in rows}
    hits = _asked(answers.look(handles, tools.Look(what="timeline", session=key, words=rows[0]["untrusted_text"])))
    assert hits["total"] >= len(hits["hits"]) > 0


def test_ops_are_a_page(handles: Handles, session: Path, tmp_path: Path) -> None:
    """By op and line; without a trace the error says how to make one."""
    with pytest.raises(UsageError, match="stepscope trace"):
        answers.look(handles, tools.Look(what="ops", session=str(session)))
    path = with_ops(starving(tmp_path / "traced.stepscope"))
    (op,) = _asked(answers.look(handles, tools.Look(what="ops", session=str(path))))["ops"]
    assert (op["untrusted_name"], op["line"], op["calls"]) == ("model/MatMul", 3, 6)


def test_compare_says_how_sure_it_is(handles: Handles, session: Path, tmp_path: Path) -> None:
    """The time that decides with its interval, and the findings that are gone."""
    other = starving(tmp_path / "fast.stepscope", wait_ms=2)
    answer = answers.compare(handles, tools.Prove(before=(str(session),), after=(str(other),)))
    assert len(answer) <= fitting.FIRST_BYTES
    main = _asked(answer)["main"]
    assert main["low"] < main["ratio"] < main["high"]
    assert _asked(answer)["design"] == "within"


def test_check_finds_what_can_be_read(tmp_path: Path) -> None:
    """A static finding with its place, and how many there are."""
    (tmp_path / "slow.py").write_text(SLOW)
    said = _asked(answers.check(tools.Check(paths=(str(tmp_path),))))
    assert said["findings"][0]["code"] == "TFD001"
    assert said["findings"][0]["where"]["line"] == 22


ANSWERS: dict[str, Callable[[Handles, dict[str, Path]], bytes]] = {
    "diagnose": lambda h, at: answers.diagnose(h, tools.Diagnose(session=str(at["one"]))),
    "finding": lambda h, at: answers.diagnose(h, tools.Diagnose(session=str(at["one"]), finding=1, max_bytes=9000)),
    "no finding": lambda h, at: answers.diagnose(h, tools.Diagnose(session=str(at["one"]), finding=99)),
    "missing": lambda h, at: answers.diagnose(h, tools.Diagnose(session=str(at["folder"] / "no"))),
    "source": lambda h, at: answers.look(h, tools.Look(what="source", session=str(at["one"]), file=str(at["source"]))),
    "no source": lambda h, at: answers.look(h, tools.Look(what="source", session=str(at["one"]), file=str(at["file"]))),
    "step": lambda h, at: answers.look(h, tools.Look(what="step", step="5", session=str(at["one"]), max_bytes=9000)),
    "timeline": lambda h, at: answers.look(h, tools.Look(what="timeline", session=str(at["one"]))),
    "search": lambda h, at: answers.look(h, tools.Look(what="timeline", session=str(at["one"]), words=MARK)),
    "ops": lambda h, at: answers.look(h, tools.Look(what="ops", session=str(at["one"]))),
    "prove": lambda h, at: answers.compare(
        h, tools.Prove(before=(str(at["one"]),), after=(str(at["other"]),), max_bytes=9000)
    ),
    "same": lambda h, at: answers.compare(h, tools.Prove(before=(str(at["one"]),), after=(str(at["one"]),))),
    "check": lambda h, at: answers.check(tools.Check(paths=(str(at["file"]),))),
    "no check": lambda h, at: answers.check(tools.Check(paths=(str(at["folder"] / "no"),))),
}


@given(text=TEXTS)
@example(text=MARK + MARK.join(PIECES))
@settings(
    max_examples=1, phases=(Phase.explicit, Phase.generate), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_answer_lets_text_of_a_job_out(handles: Handles, text: str) -> None:
    """Of each tool, of errors too: a hostile name stands below keys that say so, without what hides or turns text."""
    with tempfile.TemporaryDirectory(prefix=MARK) as folder:
        name = text.replace("/", "")
        at = {"folder": Path(folder) / name, "source": Path("/job") / name}
        at["folder"].mkdir()
        at["one"] = starving(at["folder"] / f"{name}.stepscope", text, str(at["source"]))
        at["other"] = starving(at["folder"] / "other.stepscope", text[::-1] + MARK, "/job/other.py", wait_ms=9)
        with_ops(at["one"], text)
        at["file"] = at["folder"] / f"{name}.py"
        at["file"].write_text(f"# {MARK}\n{SLOW}")
        seen = set()
        for word, ask in ANSWERS.items():
            try:
                answer = ask(handles, at)
            except StepscopeError as error:
                answer = refusals.said(error)
                seen.add(word)
            assert leaks(answer) == [], (word, answer)
            assert len(answer) <= 9000
            assert word == "no finding" or MARK in answer.decode(), word
        assert seen == {"no finding", "missing", "no source", "same", "no check"}
