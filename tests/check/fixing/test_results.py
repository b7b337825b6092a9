"""A fix changes neither what a program prints nor what it computes: real programs, run before and after it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import _fix_programs
import fix_property
from _warm import Ran, Warm, difference
from fix_property import Tally
from stepscope.check.registry import ALL

CODES = _fix_programs.codes()
SNIPPETS = 30
TEMPLATES = 5


@pytest.fixture(scope="module")
def warms() -> Iterator[dict[str, Warm]]:
    """Interpreters that have imported TensorFlow, by path."""
    found: dict[str, Warm] = {}
    yield found
    for warm in found.values():
        warm.__exit__(None, None, None)


def warm_for(code: str, warms: dict[str, Warm]) -> Warm:
    """The interpreter for a rule's programs."""
    python = fix_property.python_for(code)
    if not python:
        pytest.skip("no TensorFlow of the version that these programs need")
    if python not in warms:
        warms[python] = Warm(python)
    return warms[python]


@pytest.mark.tf
@pytest.mark.slow
@pytest.mark.parametrize("code", CODES)
def test_five_programs(code: str, warms: dict[str, Warm]) -> None:
    """Five programs of a rule run, and give the same after its fix, which at least one of them gets."""
    templates = _fix_programs.load(code)
    tally = Tally()
    for text in templates.texts.values():
        fix_property.judge(warm_for(code, warms), code, _fix_programs.plain(text), tally, templates.version)
    assert tally.broken == []
    assert tally.example == ""
    assert (tally.ran, tally.different) == (TEMPLATES, 0)
    assert tally.applied >= 1


@pytest.mark.tf
@pytest.mark.slow
def test_property(warms: dict[str, Warm]) -> None:
    """Of thirty generated programs (make bench-fix-property: of 2,000) none gives something else after the fix, and most are fixed."""
    newest = [code for code in CODES if not _fix_programs.load(code).version]
    tallies = {
        code: fix_property.run(code, count, 7, warm_for(code, warms))
        for code, count in fix_property.shares(newest, SNIPPETS).items()
    }
    assert [t.example for t in tallies.values() if t.different] == []
    assert sum(t.generated for t in tallies.values()) == SNIPPETS
    assert sum(t.applied for t in tallies.values()) > SNIPPETS // 3


def test_every_rule_with_a_fix_has_programs() -> None:
    """Five templates for each rule that plans a fix for one of them, and for no other."""
    assert set(CODES) <= {rule.code for rule in ALL}
    for code in CODES:
        templates = _fix_programs.load(code)
        assert templates.compared
        assert len(templates.texts) == TEMPLATES
        ways = [fix_property.fixed(_fix_programs.plain(t), code, unsafe=True) for t in templates.texts.values()]
        assert any(offered for _, offered in ways), code


def test_variations_are_programs() -> None:
    """A variation is Python, the same for the same seed and another one for others."""
    for code in CODES:
        for text in _fix_programs.load(code).texts.values():
            made = [_fix_programs.varied(text, seed) for seed in range(6)]
            for program in made:
                compile(program, code, "exec")
            assert made == [_fix_programs.varied(text, seed) for seed in range(6)]
            assert len(set(made)) > 1


def test_differences() -> None:
    """A tensor is no array, a number that differs by rounding is the same, what a fix adds is no matter."""

    def of(value: object, **more: object) -> Ran:
        return Ran(values={"x": value, **more})

    array: dict[str, object] = {"array": "float32", "shape": [1], "of": [1.0]}
    assert difference(of(array), of({"tensor": "float32", "shape": [1], "of": [1.0]}))
    assert not difference(of(array), of({**array, "of": [1.000001]}, made_by_fix=3))
    assert difference(of(array), of({**array, "array": "float64"}))
    assert difference(of(3), of(4))
    assert "gone" in difference(of(3), Ran())
    assert "fails" in difference(of(3), Ran(error="ValueError: no"))
    assert not difference(Ran(stdout="loss 0.33333\n"), Ran(stdout="loss 0.33334\n"))
    assert difference(Ran(stdout="1 2\n"), Ran(stdout="1 3\n"))
