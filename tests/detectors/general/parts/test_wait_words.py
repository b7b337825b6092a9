"""Words of waits."""

from __future__ import annotations

from stepscope.causes.general import waits
from stepscope.detectors.general.parts import wait_words


def test_every_reason_with_a_name_has_words() -> None:
    """No wait that is found lacks a title."""
    assert set(wait_words.OF_REASONS) == waits.NAMED
