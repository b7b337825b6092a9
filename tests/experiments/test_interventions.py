"""The catalogue of interventions."""

from __future__ import annotations

import re

import pytest

from stepscope.agent.trials.registry import FAMILIES
from stepscope.experiments import interventions
from stepscope.model.report.components import COMPONENTS
from stepscope.tables.errors import UsageError
from stepscope.wire.trials import NOTHING


def test_the_agent_knows_exactly_these() -> None:
    """The catalogue and the agent's table have the same names, and each once."""
    names = [intervention.name for intervention in interventions.ALL]
    assert sorted(names) == sorted(FAMILIES.keys() - {NOTHING})
    assert len(set(names)) == len(names)
    assert set(names) >= interventions.SWITCHED


def test_every_intervention_says_what_it_does() -> None:
    """Texts are sentences, components exist, and whatever is called a gain has a lasting form."""
    for intervention in interventions.ALL:
        assert intervention.text.endswith(".")
        assert intervention.limits.endswith(".")
        assert intervention.lasting
        assert intervention.lifts <= set(COMPONENTS)
        assert intervention.lifts


@pytest.mark.parametrize(
    ("text", "name", "argument"),
    [
        ("compute-only", "compute-only", ""),
        ("batch:4", "batch", "4"),
        ("batch:1/2", "batch", "1/2"),
        (" stub : train.py:41", "stub", "train.py:41"),
        ("without-callback:Plot", "without-callback", "Plot"),
    ],
)
def test_parsing(text: str, name: str, argument: str) -> None:
    """An intervention is a name and perhaps an argument, which may have colons."""
    found, given = interventions.parse(text)
    assert (found.name, given) == (name, argument)
    assert found is interventions.by_name(name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("faster", "no intervention 'faster'; expected one of compute-only, input-only, .*batch:K, .*stub:FUNCTION"),
        ("", "no intervention ''"),
        ("batch", "batch takes factor; expected batch:K"),
        ("batch:0", "expected a number of at least 1 after batch:"),
        ("batch:1/0", "expected a number of at least 1 after batch:"),
        ("threads:1/2", "expected a number of at least 1 after threads:"),
        ("threads:many", "expected a number"),
        ("gc-off:now", "gc-off takes no argument; expected gc-off"),
    ],
)
def test_what_cannot_be_parsed(text: str, message: str) -> None:
    """The error says what was given and what was expected."""
    with pytest.raises(UsageError, match=message) as caught:
        interventions.parse(text)
    assert re.search("expected", str(caught.value))
