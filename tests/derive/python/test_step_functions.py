"""The role of a statement in a function that each step calls: no loop is around the step's call there."""

from __future__ import annotations

import pytest

from stepscope.derive.python.loop_source import Role, role_of_line

SOURCE = """\
class Ear:
    def score(self, wave):
        wave = resample(wave)
        loud = wave.max()
        scores = step(wave)
        self.seen.append(scores.argmax())
        return scores, loud
    def other(self, wave):
        wave = resample(wave)
        return wave
    def many(self, waves):
        waves = sorted(waves)
        return [step(wave) for wave in waves]
step(resample(wave))
"""


@pytest.mark.parametrize(
    ("call", "line", "role"),
    [
        (5, 3, "feeds"),
        (5, 4, "other"),
        (5, 5, "call"),
        (5, 6, "uses"),
        (5, 9, "unknown"),  # another function
        (13, 12, "unknown"),  # the comprehension is the loop, and the line is before it
        (13, 13, "call"),
        (14, 14, "unknown"),  # outside of any function
    ],
)
def test_the_function_around_the_call_is_what_each_step_does(call: int, line: int, role: Role) -> None:
    """Its statements feed the call or use what it returned, as those of a loop do."""
    assert role_of_line(SOURCE, call, line) == role
