"""What the live analysis sees of names: a sequence like any other, of which old entries are unknown."""

from __future__ import annotations

import pytest

from stepscope.collector.recording.recent_tables import RecentNames


def test_iterating_names_ends() -> None:
    """A loop over the names ends with the last; this once kept a sidecar beside a GPU busy for ever."""
    names = RecentNames({1: "gpu:0 A", 2: "net:eth0"})
    assert list(names) == ["?", "gpu:0 A", "net:eth0"]
    assert list(RecentNames({})) == []


def test_names_are_read_as_of_a_list() -> None:
    """By number, from the end, in slices; there is nothing after the last."""
    names = RecentNames({1: "gpu:0 A", 2: "net:eth0"})
    assert (names[1], names[-1], names[1:]) == ("gpu:0 A", "net:eth0", ["gpu:0 A", "net:eth0"])
    assert len(names) == 3
    with pytest.raises(IndexError):
        names[3]
