"""Instructions of a compiled program (HLO), for those that a trace's events name: shapes, windows, work, lines.

Operations are counted in matrix products and convolutions only, two for each multiplication and addition, from shapes:
nearly all work of a program with any is in these. A fused op has those of what was fused. Calls of cuDNN and cuBLAS
keep the convolution's window and the product's dimensions.

Source: openxla/xla ``xla/service/hlo.proto``, ``xla/xla_data.proto``; ``xla/service/gpu/cublas_cudnn.h`` (targets),
``backend_configs.proto``. Field numbers used here::

    HloModuleProto       computations = 3, stack_frame_index = 17
    HloComputationProto  instructions = 2, id = 5
    HloInstructionProto  name = 1, opcode = 2, shape = 3, metadata = 7, dot_dimension_numbers = 30, window = 15,
                         convolution_dimension_numbers = 16, custom_call_target = 28, id = 35, operand_ids = 36,
                         called_computation_ids = 38, backend_config = 43, feature_group_count = 50,
                         batch_group_count = 58
    OpMetadata           op_name = 2, source_file = 3, source_line = 4, stack_frame_id = 15
    Window               dimensions = 1 (size = 1, stride = 2, window_dilation = 5, base_dilation = 6)
    ConvolutionDimensionNumbers  kernel_input_feature = 3, kernel_output_feature = 4, kernel_spatial = 6
    DotDimensionNumbers  lhs_contracting_dimensions = 1
    StackFrameIndexProto file_names = 1, function_names = 2, file_locations = 3 (file 1, function 2, line 3),
                         stack_frames = 4 (location 1, parent 2); ids count from 1
"""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING

from msgspec import Struct, field

from stepscope.readers.protobuf.codec import BYTES, VARINT, signed
from stepscope.readers.protobuf.wire_fields import fields
from stepscope.readers.xplane import hlo_shapes
from stepscope.tables.program_ops import Convolution, Frame, ProgramOp

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from stepscope.readers.byte_source import ByteSource
    from stepscope.readers.xplane.hlo_shapes import Shape
    from stepscope.readers.xplane.messages import Span

_COMPUTATIONS, _FRAMES = 3, 17
_INSTRUCTIONS, _COMPUTATION_ID = 2, 5
_NAME, _OPCODE, _SHAPE, _METADATA, _WINDOW, _CONVOLUTION, _TARGET = 1, 2, 3, 7, 15, 16, 28
_DOT, _ID, _OPERANDS, _CALLED, _CONFIG, _FEATURE_GROUPS, _BATCH_GROUPS = 30, 35, 36, 38, 43, 50, 58
_OP_NAME = 2
_SOURCE_FILE, _SOURCE_LINE, _STACK_FRAME = 3, 4, 15
_SIZE, _STRIDE, _WINDOW_DILATION, _BASE_DILATION = 1, 2, 5, 6
_LOCATIONS, _STACK_FRAMES = 3, 4
_KERNEL_IN, _KERNEL_OUT, _KERNEL_SPATIAL = 3, 4, 6
MAX_FRAMES = 8
MAX_DEPTH = 8
"""Depth of fused computations; a damaged file could nest without end."""
_GRADIENTS = {"__cudnn$convBackwardInput": (1, 0), "__cudnn$convBackwardFilter": (-1, 1)}
"""Target -> where the kernel and the forward result are: an operand, or the op's own result (-1)."""
_PRODUCTS = ("__cublas$", "__onednn$matmul")
_CONTRACTED = re.compile(r'"lhs_contracting_dimensions":\["?(\d+(?:"?,"?\d+)*)"?\]')


class _Instruction(Struct):
    name: str = ""
    opcode: str = ""
    shape: Shape = field(default_factory=hlo_shapes.Shape)
    target: str = ""
    operands: list[int] = field(default_factory=list)
    called: list[int] = field(default_factory=list)
    windows: list[dict[int, int]] = field(default_factory=list)
    dimensions: dict[int, list[int]] = field(default_factory=dict)
    contracted: list[int] = field(default_factory=list)
    groups: int = 1
    frame: int = 0
    source: tuple[str, int] = ("", 0)
    op_name: str = ""


class _Frames(Struct):
    files: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    locations: list[tuple[int, int, int]] = field(default_factory=list)
    frames: list[tuple[int, int]] = field(default_factory=list)

    def of(self, number: int) -> Iterator[Frame]:
        """The lines of a frame and those around it, innermost first."""
        for _ in range(MAX_FRAMES):
            if not 1 <= number <= len(self.frames):
                return
            location, number = self.frames[number - 1]
            if 1 <= location <= len(self.locations):
                file, function, line = self.locations[location - 1]
                yield Frame(_at(self.files, file), _at(self.functions, function), line)


def read(source: ByteSource, module: Span, wanted: Collection[str]) -> tuple[ProgramOp, ...]:
    """The instructions of a program whose names are in ``wanted``.

    Raises:
        FormatError: the program is damaged.
    """
    if not wanted:
        return ()
    frames = _Frames()
    by_id: dict[int, _Instruction] = {}
    computations: dict[int, list[_Instruction]] = {}
    for number, wire, at, end in fields(source.view, *module):
        if (number, wire) == (_COMPUTATIONS, BYTES):
            _computation(source, (at, end), by_id, computations)
        elif (number, wire) == (_FRAMES, BYTES):
            frames = _frames(source, (at, end))
    work = _Work(by_id, computations)
    found = [one for made in computations.values() for one in made if one.name in wanted]
    return tuple(_op(one, work, frames) for one in found)


def _op(one: _Instruction, work: _Work, frames: _Frames) -> ProgramOp:
    lines = tuple(frames.of(one.frame)) or ((Frame(one.source[0], "", one.source[1]),) if one.source[0] else ())
    return ProgramOp(
        name=one.name,
        opcode=one.target or one.opcode,
        shape=one.shape.first.text,
        flops=work.flops(one),
        op_name=one.op_name,
        frames=lines,
        convolution=work.convolution(one),
    )


class _Work:
    """Work of instructions, by their shapes."""

    def __init__(self, by_id: dict[int, _Instruction], computations: dict[int, list[_Instruction]]) -> None:
        self._by_id = by_id
        self._computations = computations

    def flops(self, one: _Instruction, depth: int = 0) -> float:
        """Operations of one run."""
        if one.windows and one.dimensions:
            return self._of_convolution(one)
        if one.opcode == "dot" or one.target.startswith(_PRODUCTS):
            left = self._operand(one, 0)
            inner = prod(left[at] for at in one.contracted if at < len(left))
            return 2.0 * prod(one.shape.first.dimensions) * inner if one.contracted else 0.0
        if one.called and depth < MAX_DEPTH and one.opcode == "fusion":
            return sum(self.flops(part, depth + 1) for at in one.called for part in self._computations.get(at, ()))
        return 0.0

    def convolution(self, one: _Instruction, depth: int = 0) -> Convolution | None:
        """The convolution that it is, or the only one that is fused into it."""
        if one.windows and one.dimensions:
            return self._convolution(one)
        if one.opcode != "fusion" or depth >= MAX_DEPTH:
            return None
        parts = [self.convolution(part, depth + 1) for at in one.called for part in self._computations.get(at, ())]
        found = [part for part in parts if part is not None]
        return found[0] if len(found) == 1 else None

    def _operand(self, one: _Instruction, at: int) -> tuple[int, ...]:
        given = self._by_id.get(one.operands[at]) if at < len(one.operands) else None
        return given.shape.first.dimensions if given is not None else ()

    def _sides(self, one: _Instruction) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Dimensions of the kernel, and of the forward convolution's result."""
        kernel, result = _GRADIENTS.get(one.target, (1, -1))
        own = one.shape.first.dimensions
        return (self._operand(one, kernel) if kernel >= 0 else own), (
            self._operand(one, result) if result >= 0 else own
        )

    def _channels(self, one: _Instruction) -> tuple[int, int]:
        kernel, _ = self._sides(one)
        taken, made = (one.dimensions.get(key, [0])[0] for key in (_KERNEL_IN, _KERNEL_OUT))
        return (kernel[taken], kernel[made]) if max(taken, made) < len(kernel) else (0, 0)

    def _of_convolution(self, one: _Instruction) -> float:
        _, result = self._sides(one)
        taken, _ = self._channels(one)
        return 2.0 * prod(result) * taken * prod(window.get(_SIZE, 1) for window in one.windows)

    def _convolution(self, one: _Instruction) -> Convolution | None:
        taken, made = self._channels(one)
        if not taken or not made:
            return None
        steps = (_STRIDE, _WINDOW_DILATION, _BASE_DILATION)
        return Convolution(
            kernel=tuple(window.get(_SIZE, 1) for window in one.windows),
            taken=taken,
            made=made,
            plain=one.groups == 1 and all(window.get(key, 1) == 1 for window in one.windows for key in steps),
            gradient=one.target in _GRADIENTS,
        )


def _computation(
    source: ByteSource, span: Span, by_id: dict[int, _Instruction], computations: dict[int, list[_Instruction]]
) -> None:
    made, number_of = [], 0
    for number, wire, at, end in fields(source.view, *span):
        if (number, wire) == (_INSTRUCTIONS, BYTES):
            identity, one = _instruction(source, (at, end))
            by_id[identity] = one
            made.append(one)
        elif (number, wire) == (_COMPUTATION_ID, VARINT):
            number_of = at
    computations[number_of] = made


def _instruction(source: ByteSource, span: Span) -> tuple[int, _Instruction]:
    one, identity = _Instruction(), 0
    for number, wire, at, end in fields(source.view, *span):
        if wire == BYTES:
            _part(source, one, number, (at, end))
        elif wire == VARINT and number == _ID:
            identity = at
        elif wire == VARINT and number in {_FEATURE_GROUPS, _BATCH_GROUPS}:
            one.groups *= max(1, at)
        elif wire == VARINT and number in {_OPERANDS, _CALLED}:
            (one.operands if number == _OPERANDS else one.called).append(at)
    return identity, one


def _part(source: ByteSource, one: _Instruction, number: int, span: Span) -> None:
    """A part of an instruction that is a message, a text or packed numbers."""
    if number == _NAME:
        one.name = source.text(*span)
    elif number == _OPCODE:
        one.opcode = source.text(*span)
    elif number == _TARGET:
        one.target = source.text(*span)
    elif number == _SHAPE:
        one.shape = hlo_shapes.read(source, span)
    elif number == _METADATA:
        _place(source, one, span)
    elif number == _OPERANDS:
        one.operands += hlo_shapes.numbers(source, *span)
    elif number == _CALLED:
        one.called += hlo_shapes.numbers(source, *span)
    else:
        _work(source, one, number, span)


def _work(source: ByteSource, one: _Instruction, number: int, span: Span) -> None:
    """What says how much an instruction works."""
    if number == _WINDOW:
        windows = [(at, end) for key, wire, at, end in fields(source.view, *span) if (key, wire) == (1, BYTES)]
        one.windows = [{k: v for k, kind, v, _ in fields(source.view, *part) if kind == VARINT} for part in windows]
    elif number == _CONVOLUTION:
        one.dimensions = {_KERNEL_IN: [0], _KERNEL_OUT: [0], **_numbered(source, span)}
    elif number == _DOT:
        one.contracted = _numbered(source, span).get(1, [])
    elif number == _CONFIG and (said := _CONTRACTED.search(source.text(*span))):
        one.contracted = [int(text) for text in re.findall(r"\d+", said.group(1))]


def _numbered(source: ByteSource, span: Span) -> dict[int, list[int]]:
    """The numbers of a message, by field."""
    found: dict[int, list[int]] = {}
    for number, wire, at, end in fields(source.view, *span):
        if wire == VARINT:
            found.setdefault(number, []).append(signed(at))
        elif wire == BYTES:
            found.setdefault(number, []).extend(hlo_shapes.numbers(source, at, end))
    return found


def _place(source: ByteSource, one: _Instruction, span: Span) -> None:
    file, line = "", 0
    for number, wire, at, end in fields(source.view, *span):
        if (number, wire) == (_OP_NAME, BYTES):
            one.op_name = source.text(at, end)
        elif (number, wire) == (_SOURCE_FILE, BYTES):
            file = source.text(at, end)
        elif (number, wire) == (_SOURCE_LINE, VARINT):
            line = at
        elif (number, wire) == (_STACK_FRAME, VARINT):
            one.frame = at
    one.source = (file, line)


def _frames(source: ByteSource, span: Span) -> _Frames:
    found = _Frames()
    for number, wire, at, end in fields(source.view, *span):
        if wire != BYTES:
            continue
        if number in {1, 2}:
            (found.files if number == 1 else found.functions).append(source.text(at, end))
        elif number in {_LOCATIONS, _STACK_FRAMES}:
            part = {key: value for key, kind, value, _ in fields(source.view, at, end) if kind == VARINT}
            if number == _LOCATIONS:
                found.locations.append((part.get(1, 0), part.get(2, 0), part.get(3, 0)))
            else:
                found.frames.append((part.get(1, 0), part.get(2, 0)))
    return found


def _at(texts: list[str], number: int) -> str:
    return texts[number - 1] if 1 <= number <= len(texts) else ""
