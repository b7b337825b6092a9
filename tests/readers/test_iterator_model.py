"""tf.data's live model is read as it was written, and damage is told, never guessed at."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.derive import model_proto

from stepscope.readers import iterator_model
from stepscope.readers.iterator_model import Node
from stepscope.readers.protobuf.codec import ProtoError

_UINT = st.integers(0, 2**63 - 1)
_NODES = st.lists(
    st.builds(
        Node,
        id=st.integers(1, 1000),
        name=st.text(st.characters(codec="utf-8"), max_size=20),
        num_elements=_UINT,
        processing_ns=_UINT,
        buffered_elements=_UINT,
        parameters=st.dictionaries(st.sampled_from(["parallelism", "buffer_size"]), st.floats(allow_nan=False)),
        inputs=st.lists(_UINT, max_size=4).map(tuple),
    ),
    max_size=5,
    unique_by=lambda n: n.id,
)


@given(nodes=_NODES, output=st.integers(0, 1000), gaps=st.lists(_UINT, max_size=120), packed=st.booleans())
def test_what_was_written_is_read(nodes: list[Node], output: int, gaps: list[int], packed: bool) -> None:
    """Every stage, the output and the gaps come back as they were written, packed or not."""
    read = iterator_model.parse(model_proto.model(nodes, output, gaps, packed=packed))
    assert read.nodes == {n.id: n for n in nodes}
    assert read.output == output
    assert read.gaps_us == tuple(gaps)


@given(data=st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """On bytes of any kind the only error is ProtoError."""
    try:
        iterator_model.parse(data)
    except ProtoError:
        return


@given(
    nodes=_NODES, gaps=st.lists(_UINT, max_size=20), flips=st.lists(st.tuples(_UINT, st.integers(0, 255)), max_size=4)
)
def test_damaged_models_are_read_or_refused(nodes: list[Node], gaps: list[int], flips: list[tuple[int, int]]) -> None:
    """A model with changed bytes raises ProtoError or nothing."""
    data = bytearray(model_proto.model(nodes, 1, gaps))
    for at, value in flips:
        if data:
            data[at % len(data)] = value
    try:
        iterator_model.parse(bytes(data))
    except ProtoError:
        return


def test_a_cut_model_is_refused() -> None:
    """A message that ends in the middle of a field says which field and how much is missing."""
    whole = model_proto.model([Node(id=1, name="Map")], 1, [])
    with pytest.raises(ProtoError, match=r"field 1 needs \d+ bytes"):
        iterator_model.parse(whole[: len(whole) // 2])


def test_unknown_fields_are_skipped() -> None:
    """Fields of a newer TensorFlow do not disturb those that are known."""
    newer = model_proto.number(90, 7) + model_proto.message(91, b"x") + model_proto.double(92, 1.5)
    whole = newer + model_proto.model([Node(id=4, name="Range")], 4, [1, 2])
    read = iterator_model.parse(whole)
    assert (read.output, read.gaps_us, list(read.nodes)) == (4, (1, 2), [4])


@pytest.mark.parametrize("wire", [3, 4, 6, 7])
def test_other_wire_types_are_refused(wire: int) -> None:
    """Groups and undefined wire types raise, with the type in the message."""
    with pytest.raises(ProtoError, match=f"wire type {wire}"):
        iterator_model.parse(bytes([1 << 3 | wire]))


def test_an_empty_model_is_empty() -> None:
    """No bytes are a model without stages."""
    read = iterator_model.parse(b"")
    assert (read.nodes, read.output, read.gaps_us) == ({}, 0, ())
