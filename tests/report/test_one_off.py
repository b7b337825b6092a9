"""A cost that is paid once is not one of the step."""

from types import ModuleType

import msgspec

from stepscope.report import words
from stepscope.tables.findings import Evidence


def test_time_before_the_first_step_is_of_the_run(samples: ModuleType) -> None:
    """A finding whose time is lost in initialization costs run time, the same one in training costs the step."""
    (first, *_) = samples.input_bound().findings
    once = msgspec.structs.replace(first, exposed_stage="initialization")
    assert not words.is_between_steps(first)
    assert words.is_between_steps(once)
    assert words.cost_text(once.cost, between_steps=words.is_between_steps(once)).endswith("of the run time")


def test_python_between_two_steps_is_a_part_of_the_step(samples: ModuleType) -> None:
    """Its cost is a share of the steps' time, which may be half of the run."""
    (first, *_) = samples.input_bound().findings
    evidence = Evidence(metric="other_python_ratio", value=0.5, unit="ratio", refs=("component:other-python",))
    loop = msgspec.structs.replace(first, pipeline_stage="none", evidence=(evidence,))
    assert not words.is_between_steps(loop)
    assert words.is_between_steps(msgspec.structs.replace(loop, evidence=()))
