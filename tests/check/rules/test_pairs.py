"""Every rule that is loud has a slow and a fixed program, tells them apart, and pays off as its severity says."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.check import checking

import _pairs
from _pairs import Measured, Pair, Ran
from stepscope.check.registry import ALL
from stepscope.check.rule import Rule

LOUD = [rule for rule in ALL if rule.severity != "info"]
PAIRS = {pair.code: pair for pair in _pairs.pairs()}
MEASURED = _pairs.load()
RULES = {rule.code: rule for rule in ALL}
every_loud_rule = pytest.mark.parametrize("rule", LOUD, ids=lambda rule: rule.code)
every_pair = pytest.mark.parametrize("pair", PAIRS.values(), ids=lambda pair: pair.code)


@every_loud_rule
def test_a_loud_rule_has_a_pair(rule: Rule) -> None:
    """A warning or an error has a slow and a fixed program."""
    if rule.code not in PAIRS:
        pytest.skip("has none yet")
    assert PAIRS[rule.code].fixed.exists()


@every_loud_rule
def test_what_was_measured_supports_the_severity(rule: Rule) -> None:
    """A warning or an error pays off 1.5 times in measured.json, and claims no more than was measured."""
    if rule.code not in MEASURED:
        pytest.skip("not measured yet")
    assert _pairs.supports(MEASURED[rule.code])
    assert rule.speedup <= 1.5 * MEASURED[rule.code].ratio


@every_pair
def test_a_rule_tells_its_pair_apart(pair: Pair) -> None:
    """The rule reports the slow program and says nothing of the fixed one."""
    assert pair.code in RULES, "a pair without a rule"
    version = pair.version or "2.21"
    rules = [RULES[pair.code]]
    slow, fixed = (
        checking.hits({path.name: path.read_text(encoding="utf-8")}, version=version, rules=rules)
        for path in (pair.slow, pair.fixed)
    )
    assert [hit.code for hit in slow]
    assert [f"{hit.code}:{hit.span.line}" for hit in fixed] == []


@every_pair
def test_a_fix_changes_no_result(pair: Pair) -> None:
    """Where ``--fix`` was measured, a safe fix keeps the result and brings what the fixed program brings, nearly."""
    one = MEASURED.get(pair.code)
    if one is None or not one.fix:
        pytest.skip("has no fix")
    assert one.fix_same_result or one.fix == "unsafe"
    assert one.fix_ratio is not None
    assert one.fix_ratio >= 0.5 * one.ratio


def test_measured_is_of_pairs_that_exist() -> None:
    """measured.json names no pair that is gone."""
    assert set(MEASURED) <= set(PAIRS)


def test_the_last_line_is_what_counts() -> None:
    """A program's last line is read, whatever it printed before; other last lines are errors."""
    assert _pairs.parse('epoch 1\n{"seconds": 2, "result": [1, 2]}\n', PAIRS_ANY) == Ran(seconds=2.0, result=[1, 2])
    for output in ("", "done\n", '{"seconds": 1}\n', "[1]\n"):
        with pytest.raises(RuntimeError, match="last line"):
            _pairs.parse(output, PAIRS_ANY)


def test_a_fork_counts_cpu_time(tmp_path: Path) -> None:
    """A program in a fork says what it would say on its own, but its clock is that of the CPU; a failure is told."""
    program = tmp_path / "slow.py"
    said = "json.dumps({'seconds': 1, 'result': time.perf_counter is time.process_time})"
    program.write_text(f"import json, time\nprint({said})\n")
    call = f"import pathlib, _forks; print(_forks.run(pathlib.Path({str(program)!r}), 60.0).result)"

    def python() -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", call], cwd=FOLDER, capture_output=True, text=True, check=False)

    assert python().stdout == "True\n"
    program.write_text("raise SystemExit(3)\n")
    assert "exit code 1" in python().stderr


def test_results_may_differ_by_rounding() -> None:
    """Checksums are compared nearly, also inside of lists; texts exactly."""
    assert _pairs.same([1.0, "a"], [1.00001, "a"])
    assert not _pairs.same([1.0], [1.1])
    assert not _pairs.same([1.0], [1.0, 2.0])
    assert not _pairs.same("ab", "ac")


def test_an_accident_supports_nothing() -> None:
    """A ratio whose interval reaches below one is no support, nor is a small ratio."""

    def of(ratio: float, low: float) -> Measured:
        return Measured(
            ratio=ratio, low=low, high=9, runs=5, what="seconds", slow=2, fixed=1, tensorflow="2.21", same_result=True
        )

    assert _pairs.supports(of(1.5, 1.2))
    assert not _pairs.supports(of(1.49, 1.2))
    assert not _pairs.supports(of(3.0, 0.9))


FOLDER = Path(_pairs.__file__).parent
PAIRS_ANY = _pairs.PAIRS / "TFD001" / "slow.py"
