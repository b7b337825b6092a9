"""Which places are delayed, and what is refused."""

from __future__ import annotations

import pytest
from tests.report.samples import clean

from stepscope.tables.errors import UsageError
from stepscope.use_cases.whatif import options, slopes
from stepscope.use_cases.whatif.options import WhatIfOptions


def test_slopes_are_apart_from_trials_that_take_rounds() -> None:
    wanted = ["slopes", "batch:4", "slopes:train.py:4"]
    assert slopes.of(wanted) == ("slopes", "slopes:train.py:4")
    assert slopes.others(wanted) == ["batch:4"]


def test_a_clean_report_names_no_place() -> None:
    assert slopes.places(clean()) == {}


@pytest.mark.parametrize(("until_done", "whole"), [(True, False), (False, True)])
def test_no_slopes_in_whole_runs(*, until_done: bool, whole: bool) -> None:
    """Blocks end the run, and there is no gain to keep."""
    asked = WhatIfOptions(argv=("train.py",), trials=("slopes:load",), until_done=until_done, whole=whole)
    with pytest.raises(UsageError, match="slopes"):
        options.check(asked)
