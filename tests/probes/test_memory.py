"""What is noted when a program's memory grows."""

from __future__ import annotations

import base64
from collections.abc import Callable

from tests.probes.conftest import Recorded

from stepscope.model.log.events import IteratorModel
from stepscope.model.log.memory import MemoryHeld
from stepscope.readers import iterator_model

MB = 1 << 20
ELEMENT = 4 * MB


def test_a_list_of_tensors_is_seen(recorded: Callable[[str], Recorded]) -> None:
    """The variable, its function, number of entries and their shape; the program prints what it prints without us."""
    run = recorded("memory")
    assert (run.result.stdout, run.result.returncode) == (run.plain.stdout, 0)
    rows = [row for look in run.all(MemoryHeld) for row in look.rows if row.name == "history"]
    assert rows
    last = rows[-1]
    assert (last.function, last.dtype, last.shape) == ("collect", "float32", (1 << 20,))
    assert abs(last.bytes - last.count * ELEMENT) < MB


def test_what_the_input_holds_is_read_with_it(recorded: Callable[[str], Recorded]) -> None:
    """At a look the models of iterators in use are read, with the bytes in a cache that is being filled."""
    run = recorded("memory")
    models = [iterator_model.parse(base64.b64decode(event.proto)) for event in run.all(IteratorModel) if event.proto]
    held = [node.buffered_bytes for model in models for node in model.nodes.values() if "Cache" in node.name]
    if models:  # TensorFlow 2.17 and later
        assert max(held) >= ELEMENT
