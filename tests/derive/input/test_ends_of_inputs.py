"""Stages of inputs whose last read shows an iterator that has given its last element."""

from __future__ import annotations

from stepscope.derive.input import stages
from stepscope.derive.input.model_reads import Read
from stepscope.readers.iterator_model import IteratorModelData, Node


def read(at: int, *names: str) -> Read:
    """A chain of stages, the consumer's first."""
    count = len(names)
    nodes = {
        number: Node(id=number, name=name, num_elements=at, inputs=(number + 1,) if number < count else ())
        for number, name in enumerate(names, 1)
    }
    return Read(at=at, iterator=1, executions=at, data=IteratorModelData(nodes=nodes, output=1, gaps_us=()))


WHOLE = ("Root", "Batch", "Map", "TFRecord")


def test_what_is_left_after_the_last_element_is_no_input() -> None:
    """The stages below the batch are gone in the last read: those before say what they did."""
    reads = [read(10, *WHOLE), read(20, *WHOLE), read(30, "Root", "Batch")]
    assert stages._before_its_end(reads) == reads[:2]


def test_a_whole_last_read_stays() -> None:
    """So does the only read there is, however little it shows."""
    reads = [read(10, "Root", "Batch"), read(20, *WHOLE)]
    assert stages._before_its_end(reads) == reads
    assert stages._before_its_end(reads[:1]) == reads[:1]
