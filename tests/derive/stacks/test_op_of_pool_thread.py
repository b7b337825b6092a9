"""Generated code that a pool's thread runs gets the op that waits for it, by what was seen of that op, or none."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from tests.derive.stack_profiles import of_samples

from stepscope.derive.stacks.op_of_pool_thread import NEAR_NS, OFTEN, with_ops_of_pool_threads
from stepscope.readers import native_names
from stepscope.tables.stacks import Frame, FrameKind, StackFlag, StackProfile, Thread

CC = "/tf/libtensorflow_cc.so.2"
AT = 10_000_000_000
FORWARD = "dnnl::impl::cpu::x64::brgemm_convolution_fwd_t<(dnnl::impl::cpu::x64::cpu_isa_t)239>"
ATTACHED, WHOLE = int(StackFlag.ATTACHED), int(StackFlag.WHOLE)


def cc(function: str) -> Frame:
    return Frame(function, module=CC, kind=FrameKind.NATIVE)


START, WORKER = cc("start_thread"), cc("Eigen::ThreadPoolTempl<tsl::thread::EigenEnvironment>::WorkerLoop(int)")
POOL = cc("tsl::OneDnnThreadPool::parallel_for(int, std::function<void (int, int)> const&)::{lambda#1}::operator()")
DEVICE = cc("tensorflow::ThreadPoolDevice::Compute(tensorflow::OpKernel*, tensorflow::OpKernelContext*)")
OP = cc("tensorflow::MklConvOp<Eigen::ThreadPoolDevice, float>::Compute(tensorflow::OpKernelContext*)")
OTHER = cc("tensorflow::MklFusedConvOp<Eigen::ThreadPoolDevice, float>::Compute(tensorflow::OpKernelContext*)")
EXECUTES = cc("dnnl_primitive::execute(dnnl::impl::exec_ctx_t&) const")
PRIMITIVE = cc(f"{FORWARD}::execute(dnnl::impl::exec_ctx_t const&) const")
PART = cc(f"{FORWARD}::execute(dnnl::impl::exec_ctx_t const&) const::{{lambda#1}}::operator()(int, int) const")
CODE = Frame("[oneDNN generated code]", kind=FrameKind.GENERATED, resolved=False)
IN_POOL = (START, WORKER, POOL, PART, CODE)


def profile(*samples: tuple[int, Sequence[Frame]], flags: Sequence[int]) -> StackProfile:
    return of_samples(samples, flags=flags)


def chain(found: StackProfile, sample: int = 0) -> tuple[Frame, ...]:
    return found.frames_of(int(found.samples.stack[sample]))


def runs(op: Frame) -> tuple[Frame, ...]:
    """A stack of the op's own thread."""
    return (START, WORKER, DEVICE, op, EXECUTES, PRIMITIVE)


def often(frames: Sequence[Frame]) -> StackProfile:
    """So often that it tells by itself, long before."""
    return profile(*[(AT - 100 * NEAR_NS, frames)] * OFTEN, flags=[WHOLE] * OFTEN)


def test_the_op_stands_where_the_pool_ends() -> None:
    """Often enough it alone was seen to run the primitive, however long ago; such a stack is approximate."""
    before = often(runs(OP))
    (found, same) = with_ops_of_pool_threads([profile((AT, IN_POOL), flags=[ATTACHED]), before])
    assert chain(found) == (START, WORKER, OP, POOL, PART, CODE)
    assert native_names.owner(chain(found)) == "tensorflow::MklConvOp::Compute"
    assert found.samples.flags.tolist() == [ATTACHED | StackFlag.APPROXIMATE]
    assert same is before


def test_too_few_samples_do_not_tell() -> None:
    """Another op may run the same primitive, unless it is a gradient's."""
    seen = profile(*[(AT - 100 * NEAR_NS, runs(OP))] * (OFTEN - 1), flags=[WHOLE] * (OFTEN - 1))
    assert chain(with_ops_of_pool_threads([profile((AT, IN_POOL), flags=[ATTACHED]), seen])[0]) == IN_POOL
    backward = cc(PART.function.replace("_fwd_t", "_bwd_weights_t"))
    one = profile((AT - 100 * NEAR_NS, (*runs(OTHER)[:-1], backward)), flags=[WHOLE])
    pool = (START, WORKER, POOL, backward, CODE)
    found, _ = with_ops_of_pool_threads([profile((AT, pool), flags=[ATTACHED]), one])
    assert chain(found) == (START, WORKER, OTHER, POOL, backward, CODE)


@pytest.mark.parametrize(("apart", "op"), [(NEAR_NS - 1, OTHER), (NEAR_NS + 1, None)])
def test_of_several_ops_the_nearest_in_time(apart: int, op: Frame | None) -> None:
    """If it is near enough; else nothing is told."""
    seen = profile((AT - 3 * NEAR_NS, runs(OP)), (AT + apart, runs(OTHER)), flags=[WHOLE] * 2)
    found, _ = with_ops_of_pool_threads([profile((AT, IN_POOL), flags=[ATTACHED]), seen])
    assert chain(found) == ((START, WORKER, OP if op is None else op, POOL, PART, CODE) if op else IN_POOL)


@pytest.mark.parametrize(
    ("frames", "flags"),
    [
        ((START, WORKER, DEVICE, OTHER, EXECUTES, PART, CODE), ATTACHED),
        ((START, WORKER, POOL, PART), WHOLE),
        ((START, WORKER, POOL, CODE), ATTACHED),
    ],
    ids=["has-one", "whole", "no-primitive"],
)
def test_what_stays_as_it_is(frames: tuple[Frame, ...], flags: int) -> None:
    """Stacks with an op of their own, whole ones, and those that name no primitive."""
    alone = profile((AT, frames), flags=[flags])
    found, _ = with_ops_of_pool_threads([alone, often(runs(OP))])
    assert chain(found) == frames
    assert found.samples.flags.tolist() == [flags]


def test_an_op_that_only_makes_a_primitive_does_not_run_it() -> None:
    """A backward op asks for a forward primitive's description: that is no sign that it runs it."""
    makes = (START, WORKER, DEVICE, OP, cc("dnnl::convolution_forward::primitive_desc"), cc(f"{FORWARD}::pd_t::init"))
    alone = profile((AT, IN_POOL), flags=[ATTACHED])
    assert with_ops_of_pool_threads([alone, often(makes)])[0] is alone


def test_an_op_of_another_process_is_none() -> None:
    """Workers of one session may be on different things."""
    other = replace(often(runs(OP)), threads=(Thread(99, 99, "tf_Compute"),))
    alone = profile((AT, IN_POOL), flags=[ATTACHED])
    assert with_ops_of_pool_threads([alone, other])[0] is alone
