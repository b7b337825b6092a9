"""Which statements ask for one gradient after the other."""

from __future__ import annotations

import pytest

from stepscope.causes.host.gradients_one_by_one import asks_for_one


@pytest.mark.parametrize(
    ("source", "line", "asks"),
    [
        ("g = [t.gradient(loss, v) for v in vs]", 1, True),
        ("g = {v.name: t.gradient(target=loss, sources=[v]) for v in vs}", 1, True),
        ("for v in vs:\n    g.append(t.gradient(\n        loss, v))", 3, True),
        ("for layer in model.layers:\n    for v in layer.weights:\n        g = t.gradient(loss, v)", 3, True),
        ("g = t.gradient(loss, vs)", 1, False),
        ("g = [t.gradient(loss, vs) for loss in losses]", 1, False),
        ("for x in data:\n    loss = f(x)\n    g = t.gradient(loss, vs)", 3, False),
        ("for model in models:\n    loss = f(model)\n    g = t.gradient(loss, model.weights)", 3, False),
        (
            "for m in models:\n    with tape() as t:\n        loss = f(m)\n    g = t.gradient(loss, m.weights)",
            4,
            False,
        ),
        ("for model in models:\n    with tape() as t:\n        f(model)\n    g = t.gradient(loss, model.w)", 4, False),
        ("g = [t.gradient(loss, v) for v in vs]\nh = t.gradient(loss, vs)", 2, False),
        ("g = [t.gradient(loss, v) for", 1, False),
    ],
)
def test_statements(source: str, line: int, asks: bool) -> None:
    """The loss stays while the loop goes through the variables; a tape of each turn's own is none of these."""
    assert asks_for_one(source, line) is asks
