"""Generated code has the op that an op trace of the same moment tells; what it does not tell stays open."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from tests.derive.graph_tables import FILE, Tables
from tests.derive.stack_profiles import of_samples

from stepscope.derive.graph.index import GraphIndex
from stepscope.derive.stacks import op_at_sample
from stepscope.derive.stacks.op_at_sample import NEAR_NS, OpAnswer, OpRun, OpTimeline, with_ops_at_samples
from stepscope.derive.stacks.op_of_pool_thread import OP_TRACE, with_ops_of_pool_threads
from stepscope.readers.optrace_builder import OpTraceBuilder
from stepscope.tables.optrace import OpTrace, PlaneKind, TraceSource
from stepscope.tables.stacks import Frame, FrameKind, StackFlag, StackProfile, Thread

MS = 1_000_000
LINES = {-6883789988733336681: 0x7FED7D61F6C0, 104744146791732942: 0x7FED7DE206C0, -7796770087199865018: 0x7FEDD168CB80}
"""As TensorFlow's profiler numbered threads, and what ``pthread_self()`` was in them."""
FIRST, SECOND, MAIN = LINES.values()
ATTACHED = int(StackFlag.ATTACHED)


def cc(function: str) -> Frame:
    return Frame(function, module="/tf/libtensorflow_cc.so.2", kind=FrameKind.NATIVE)


START, WORKER = cc("start_thread"), cc("Eigen::ThreadPoolTempl<tsl::thread::EigenEnvironment>::WorkerLoop(int)")
POOL = cc("tsl::OneDnnThreadPool::parallel_for(int, std::function<void (int, int)> const&)::{lambda#1}::operator()")
DEVICE = cc("tensorflow::ThreadPoolDevice::Compute(tensorflow::OpKernel*, tensorflow::OpKernelContext*)")
KERNEL = cc("tensorflow::MklConvOp<Eigen::ThreadPoolDevice, float>::Compute(tensorflow::OpKernelContext*)")
PART = cc("dnnl::impl::cpu::x64::brgemm_convolution_fwd_t<0>::execute(dnnl::impl::exec_ctx_t const&) const")
PRODUCT = cc("dnnl::impl::cpu::x64::matmul::brgemm_matmul_t<0>::execute_body(dnnl::impl::exec_ctx_t const&) const")
CODE = Frame("[oneDNN generated code]", kind=FrameKind.GENERATED, resolved=False)
IN_POOL = (START, WORKER, POOL, PART, CODE)
ON_OWN = (START, WORKER, DEVICE, KERNEL, PART, CODE)


def traced(*ops: tuple[int, str, float, float]) -> OpTrace:
    """An op trace of (thread, op, start, duration), in milliseconds."""
    builder = OpTraceBuilder(TraceSource(format="test"))
    plane = builder.plane("/host:CPU", PlaneKind.HOST)
    lines = {number: builder.line(plane, "tf_Compute", line_id=line) for line, number in LINES.items()}
    for thread, name, start, dur in ops:
        builder.event(lines[thread], name, start * MS, dur * MS)
    return builder.build()


def told(trace: OpTrace, profile: StackProfile) -> tuple[list[tuple[Frame, ...]], list[OpAnswer]]:
    """(stacks, how the ops of samples in generated code are known)."""
    (found,), (how,) = with_ops_at_samples([profile], {7: OpTimeline([trace])})
    return [found.frames_of(stack) for stack in found.samples.stack.tolist()], how


def pooled(*samples: tuple[float, Sequence[Frame], int]) -> StackProfile:
    """Samples of one thread in generated code: (milliseconds, stack, thread that it works for)."""
    return of_samples(
        [(int(at * MS), frames) for at, frames, _ in samples],
        flags=[ATTACHED] * len(samples),
        op_threads=[thread for _, _, thread in samples],
    )


def op(name: str) -> Frame:
    return Frame(name, module=OP_TRACE, kind=FrameKind.FRAMEWORK)


@pytest.mark.parametrize(("line", "number"), LINES.items())
def test_threads_of_the_profiler_are_told_by_their_own_number(line: int, number: int) -> None:
    """Records of three threads of a real trace lie where records lie: 64-aligned, all in one part of memory."""
    assert op_at_sample.line_ids(number) == (line, line % 2**32)


def test_threads_whose_number_is_cut_to_32_bits_are_found() -> None:
    """As of TensorFlow 2.15."""
    builder = OpTraceBuilder(TraceSource(format="test"))
    plane = builder.plane("/host:CPU", PlaneKind.HOST)
    line = builder.line(plane, "tf_Compute", line_id=op_at_sample.line_ids(FIRST)[1])
    builder.event(line, "MatMul:_MklMatMul", 10 * MS, 10 * MS)
    assert told(builder.build(), pooled((12, IN_POOL, FIRST)))[1] == [OpAnswer.EXACT]


def test_an_eager_op_without_an_event_of_its_own_is_that_of_its_call() -> None:
    """On its own thread only: elsewhere its call is no op beside the one that it runs; functions are none."""
    eager = traced(
        (MAIN, "EagerLocalExecute: MatMul", 10, 10),
        (MAIN, "EagerLocalExecute: __inference_f_7", 30, 10),
        (FIRST, "MatMul:_MklMatMul", 14, 2),
    )
    stack = (START, cc("TFE_Py_FastPathExecute_C"), CODE)
    stacks, how = told(eager, pooled((12, stack, MAIN), (15, IN_POOL, 0), (32, stack, MAIN)))
    assert stacks[0] == (START, cc("TFE_Py_FastPathExecute_C"), op("MatMul"), CODE)
    assert stacks[1][2] == op("MatMul:_MklMatMul")
    assert how == [OpAnswer.EXACT, OpAnswer.ALONE, OpAnswer.NO_TRACE]


TWO = traced(
    (MAIN, "train/PartitionedCall:StatefulPartitionedCall", 0, 100),
    (FIRST, "conv2d/Conv2D:_MklNativeFusedConv2D", 10, 10),
    (SECOND, "grad/Conv2DBackpropInput:_MklNativeConv2DBackpropInput", 10, 10),
    (FIRST, "dense/MatMul:_MklNativeFusedMatMul", 30, 10),
    (SECOND, "Relu:Relu", 30, 10),
)


def test_the_op_is_that_of_the_thread_that_waits() -> None:
    """Where two run at once, the one that the sample works for; nothing of it is approximate."""
    stacks, how = told(TWO, pooled((12, IN_POOL, FIRST), (13, IN_POOL, SECOND), (14, ON_OWN, SECOND)))
    forward, backward = (
        op("conv2d/Conv2D:_MklNativeFusedConv2D"),
        op("grad/Conv2DBackpropInput:_MklNativeConv2DBackpropInput"),
    )
    assert stacks == [
        (START, WORKER, forward, POOL, PART, CODE),
        (START, WORKER, backward, POOL, PART, CODE),
        (START, WORKER, DEVICE, backward, KERNEL, PART, CODE),
    ]
    assert how == [OpAnswer.EXACT] * 3


def test_what_is_exact_is_not_approximate_and_has_no_op_of_samples() -> None:
    """An op that samples would tell does not come beside the one that the trace tells."""
    profile = pooled((12, IN_POOL, FIRST), (35, IN_POOL, 0))
    (found,), _ = with_ops_at_samples([profile], {7: OpTimeline([TWO])})
    assert found.samples.flags.tolist() == [ATTACHED, ATTACHED | StackFlag.APPROXIMATE]
    before = of_samples(
        [(0, (START, WORKER, DEVICE, KERNEL, cc("dnnl_primitive::execute(x)"), PART))] * 9, flags=[1] * 9
    )
    assert with_ops_of_pool_threads([found, before])[0] is found


def test_the_only_op_of_onednn_s_that_ran() -> None:
    """What only calls others, and what has oneDNN run nothing, is none of the ops that it may be."""
    stacks, how = told(TWO, pooled((35, IN_POOL, 0)))
    assert stacks == [(START, WORKER, op("dense/MatMul:_MklNativeFusedMatMul"), POOL, PART, CODE)]
    assert how == [OpAnswer.ALONE]


def test_of_several_ops_none_is_guessed() -> None:
    """Nor is one made up where none ran, or where nothing was traced."""
    stacks, how = told(TWO, pooled((12, IN_POOL, 0), (25, IN_POOL, 0), (200, IN_POOL, 0)))
    assert stacks == [IN_POOL] * 3
    assert how == [OpAnswer.AMBIGUOUS, OpAnswer.NONE, OpAnswer.NO_TRACE]


def test_of_several_ops_the_one_that_runs_that_primitive() -> None:
    """As other samples of the window prove; two that do leave it open."""
    proof = (12, IN_POOL, FIRST)
    far = 12 + 2 * NEAR_NS / MS
    late = traced(
        (FIRST, "conv2d/Conv2D:_MklNativeFusedConv2D", 10, 10),
        (FIRST, "conv2d/Conv2D:_MklNativeFusedConv2D", far, 10),
        (SECOND, "grad:_MklNativeConv2DBackpropInput", 10, 10),
        (SECOND, "grad:_MklNativeConv2DBackpropInput", far, 10),
    )
    assert told(late, pooled(proof, (far + 1, IN_POOL, 0)))[1] == [OpAnswer.EXACT, OpAnswer.PRIMITIVE]
    both = (13, IN_POOL, SECOND)
    assert told(late, pooled(proof, both, (far + 1, IN_POOL, 0)))[1] == [
        OpAnswer.EXACT,
        OpAnswer.EXACT,
        OpAnswer.AMBIGUOUS,
    ]


@pytest.mark.parametrize(
    ("at", "stack", "how"),
    [
        (15, IN_POOL, OpAnswer.BESIDE),
        (15, (START, WORKER, POOL, PRODUCT, CODE), OpAnswer.AMBIGUOUS),
        (21, IN_POOL, OpAnswer.NONE),
    ],
    ids=["same-run", "another-primitive", "run-is-over"],
)
def test_the_thread_s_samples_beside_tell_while_the_op_still_runs(
    at: float, stack: tuple[Frame, ...], how: OpAnswer
) -> None:
    """The same part of the same run of the op; not another primitive, nor after its end."""
    assert told(TWO, pooled((12, IN_POOL, FIRST), (at, stack, 0)))[1] == [OpAnswer.EXACT, how]


def test_samples_beside_that_differ_tell_nothing() -> None:
    """Between two ops that ran at once the thread may have worked for either."""
    samples = pooled((12, IN_POOL, FIRST), (14, IN_POOL, 0), (16, IN_POOL, SECOND))
    assert told(TWO, samples)[1] == [OpAnswer.EXACT, OpAnswer.AMBIGUOUS, OpAnswer.EXACT]


def test_inside_of_an_op_that_others_are_nested_in() -> None:
    """The innermost op counts; behind it the outer one again."""
    nested = traced((FIRST, "outer:MapDefun", 10, 20), (FIRST, "inner:_MklMatMul", 12, 5))
    stacks, _ = told(nested, pooled((13, IN_POOL, FIRST), (20, IN_POOL, FIRST)))
    assert [frames[2].function for frames in stacks] == ["inner:_MklMatMul", "outer:MapDefun"]


def test_a_thread_without_ops_of_that_moment_is_not_believed() -> None:
    """What its stack led to may be left of an earlier call: the op is the one that ran."""
    stacks, how = told(TWO, pooled((35, IN_POOL, MAIN)))
    assert stacks[0][2] == op("dense/MatMul:_MklNativeFusedMatMul")
    assert how == [OpAnswer.ALONE]


def test_the_op_has_the_line_that_made_it_or_its_layer() -> None:
    """As far as the graph was read; else it has none."""
    tables = Tables()
    graph = tables.graph()
    graph.op("own/MatMul", "MatMul", line=40)
    graph.op("dense/MatMul", "MatMul", layer=tables.layer("dense", line=5))
    ops = OpTimeline([], GraphIndex(tables.worker()))
    names = ("own/MatMul", "dense/MatMul", "elsewhere")
    frames = [ops.frame(OpRun(0, 1, name, "_MklNativeMatMul")) for name in names]
    assert [(frame.file, frame.line) for frame in frames] == [(FILE, 40), (FILE, 5), ("", 0)]
    assert frames[0].function == "own/MatMul:_MklNativeMatMul"


def test_other_samples_and_processes_stay_as_they_are() -> None:
    """Whole stacks, and those of a process without an op trace."""
    whole = of_samples([(12 * MS, (START, WORKER, DEVICE, KERNEL))], flags=[int(StackFlag.WHOLE)], op_threads=[FIRST])
    other = replace(pooled((12, IN_POOL, FIRST)), threads=(Thread(8, 8, "x"),))
    found, how = with_ops_at_samples([whole, other], {7: OpTimeline([TWO])})
    assert found == (whole, other)
    assert how == ([], [])
