"""Which changes can be in effect together."""

from __future__ import annotations

import pytest

from stepscope.experiments import combine
from stepscope.experiments.interventions import by_name
from stepscope.model.report.remedies import ENVIRONMENT_REMEDIES


@pytest.mark.parametrize(
    ("kept", "trial", "together"),
    [
        ((), "", ()),
        (("graph",), "", ("graph",)),
        (("graph",), "xla-on", ("graph", "xla-on")),
        (("batch:4", "graph"), "batch:16", ("graph", "batch:16")),
        (("graph-function:a",), "graph-function:b", ("graph-function:a", "graph-function:b")),
        (("graph",), "graph", ("graph",)),
        (("threads:2",), "threads-default", ("threads-default",)),
        (("xla-off",), "xla-on", ("xla-on",)),
        (("glibc-keep", "glibc-hugepages"), "preload-jemalloc", ("preload-jemalloc",)),
        (("glibc-keep",), "glibc-hugepages", ("glibc-keep", "glibc-hugepages")),
        (("onednn-pool",), "jemalloc-keep", ("onednn-pool", "jemalloc-keep")),
    ],
)
def test_what_excludes_something_takes_its_place(kept: tuple[str, ...], trial: str, together: tuple[str, ...]) -> None:
    assert combine.merged(kept, trial) == together


def test_every_alternative_exists() -> None:
    """No group names something that can never be in effect."""
    for name in frozenset().union(*combine.ALTERNATIVES):
        assert name in ENVIRONMENT_REMEDIES or by_name(name).kind == "gain"


def test_settings_are_told_from_what_takes_hold_in_the_process() -> None:
    changes = ("graph", "glibc-keep", "batch:4")
    assert combine.settings(changes) == ("glibc-keep",)
    assert combine.interventions(changes) == ("graph", "batch:4")
