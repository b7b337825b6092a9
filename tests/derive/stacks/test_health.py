"""What kind of code frames are, which stacks are whole, who is idle."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.derive.stack_profiles import of_samples, of_text

from stepscope.derive.stacks.frame_kinds import classified, kind_of
from stepscope.derive.stacks.health import health, with_roots_checked, without_idle
from stepscope.derive.stacks.op_of_pool_thread import OP_TRACE
from stepscope.tables.stacks import Frame, FrameKind, StackFlag, Thread

LIBC = "/lib/x86_64-linux-gnu/libc.so.6"
CC = "/venv/lib/python3.11/site-packages/tensorflow/libtensorflow_cc.so.2"


@pytest.mark.parametrize(
    ("function", "module", "kind"),
    [
        ("tensorflow::Executor::Run(long)", CC, FrameKind.FRAMEWORK),
        ("_ZN10tensorflow8Executor3RunEl", CC, FrameKind.FRAMEWORK),
        ("dnnl::impl::cpu::x64::jit_avx512_core::execute()", CC, FrameKind.MATH),
        ("void Eigen::internal::gebp_kernel<float>::operator()()", CC, FrameKind.MATH),
        (
            "std::_Function_handler<void (long), Eigen::TensorExecutor<int>::run()::{lambda}>::_M_invoke()",
            CC,
            FrameKind.MATH,
        ),
        (
            "std::_Function_handler<void (), tensorflow::Foo<Eigen::Device>::Bar()>::_M_invoke()",
            CC,
            FrameKind.FRAMEWORK,
        ),
        ("std::vector<int>::push_back(int)", CC, FrameKind.NATIVE),
        ("tsl::BFCAllocator::AllocateRaw(unsigned long)", CC, FrameKind.ALLOCATOR),
        ("_int_malloc", LIBC, FrameKind.ALLOCATOR),
        ("operator new(unsigned long)", "/lib/libstdc++.so.6", FrameKind.ALLOCATOR),
        ("anything", "/usr/lib/libjemalloc.so.2", FrameKind.ALLOCATOR),
        ("malloc_printerr_not", LIBC, FrameKind.NATIVE),
        ("__memmove_avx512_unaligned_erms", LIBC, FrameKind.NATIVE),
        ("dgemm_kernel_SKYLAKEX", "/x/libscipy_openblas64_.so", FrameKind.MATH),
        ("_PyEval_EvalFrameDefault", "/usr/lib/libpython3.11.so.1.0", FrameKind.INTERPRETER),
        ("list_traverse", "/usr/bin/python3.11", FrameKind.INTERPRETER),
        ("_PyEval_EvalFrameDefault", "", FrameKind.INTERPRETER),
        ("main", "/usr/bin/job", FrameKind.NATIVE),
        ("train", "", FrameKind.OTHER),
    ],
)
def test_kinds_of_machine_code(function: str, module: str, kind: FrameKind) -> None:
    """By module, and by name where a framework links in what has a kind of its own."""
    told = FrameKind.NATIVE if module else FrameKind.OTHER
    assert kind_of(Frame(function, module=module, kind=told)) is kind


def test_frames_without_a_name_are_of_their_module() -> None:
    """A name like "[libtensorflow_cc.so.2]" says whose code it is."""
    frame = Frame("[libtensorflow_cc.so.2]", module=CC, kind=FrameKind.NATIVE, resolved=False)
    assert kind_of(frame) is FrameKind.FRAMEWORK


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("/home/ann/train.py", FrameKind.PYTHON),
        ("train.py", FrameKind.PYTHON),
        ("/venv/lib/python3.11/site-packages/keras/src/trainer.py", FrameKind.LIBRARY),
        ("/usr/lib/python3.11/threading.py", FrameKind.LIBRARY),
        ("C:\\\\Python\\\\Lib\\\\site-packages\\\\x.py".replace("\\\\", "\\"), FrameKind.LIBRARY),
        ("<frozen importlib._bootstrap>", FrameKind.LIBRARY),
    ],
)
def test_kinds_of_python(file: str, kind: FrameKind) -> None:
    """The user's code is told from what is installed."""
    assert kind_of(Frame("f", file, 1, kind=FrameKind.PYTHON)) is kind


def test_below_an_entry_all_is_the_kernel() -> None:
    """Files that know names only: what stands below asm_exc_page_fault is the kernel, what stands above is not."""
    profile = classified(of_text({"python;memcpy;asm_exc_page_fault;handle_mm_fault;clear_page": 3, "python;read": 1}))
    kinds = {frame.function: frame.kind for frame in profile.frames}
    assert {name for name, kind in kinds.items() if kind is FrameKind.KERNEL} == {
        "asm_exc_page_fault",
        "handle_mm_fault",
        "clear_page",
    }


@pytest.mark.parametrize(
    ("frames", "flag"),
    [
        ([Frame("_start"), Frame("main"), Frame("f")], StackFlag.WHOLE),
        ([Frame("[unknown]", resolved=False), Frame("__libc_start_main"), Frame("main")], StackFlag.WHOLE),
        ([Frame("clone3"), Frame("start_thread"), Frame("work")], StackFlag.WHOLE),
        ([Frame("secondary_startup_64_no_verify"), Frame("cpu_idle")], StackFlag.WHOLE),
        ([Frame("[libc.so.6]", module=LIBC, resolved=False), Frame("a"), Frame("b")], StackFlag.WHOLE),
        ([Frame("[libc.so.6]", module=LIBC, resolved=False), Frame("a")], StackFlag.TRUNCATED),
        ([Frame("memcpy", module=LIBC), Frame("a"), Frame("b")], StackFlag.TRUNCATED),
        ([Frame("tensorflow::Run()", module=CC), Frame("f")], StackFlag.TRUNCATED),
        ([], StackFlag.TRUNCATED),
    ],
)
def test_whole_stacks_reach_the_start_of_their_thread(frames: list[Frame], flag: StackFlag) -> None:
    """Told by the outermost frames."""
    native = [frame._replace(kind=FrameKind.NATIVE) for frame in frames]
    profile = of_samples([(0, native), (1, [Frame("x", kind=FrameKind.NATIVE)])])
    assert with_roots_checked(profile).samples.flags[0] == flag


def test_sources_that_do_not_tell_stay_so() -> None:
    """Names alone and Python alone say nothing of roots; what a capture has said is not said anew."""
    named = of_text({"a;b": 1})
    assert health(with_roots_checked(named)).truncated_ratio is None
    said = of_samples([(0, [Frame("f", kind=FrameKind.NATIVE)])], flags=[StackFlag.WHOLE | StackFlag.APPROXIMATE])
    assert with_roots_checked(said).samples.flags.tolist() == [StackFlag.WHOLE | StackFlag.APPROXIMATE]


def test_shares_of_what_is_not_whole() -> None:
    """By weight, of everything; each share for itself."""
    known, unknown = Frame("f", kind=FrameKind.NATIVE), Frame("[unknown]", kind=FrameKind.NATIVE, resolved=False)
    profile = of_samples(
        [(0, [known, unknown]), (1, [unknown, known]), (2, [known]), (3, [])],
        flags=[StackFlag.TRUNCATED, StackFlag.WHOLE, StackFlag.WHOLE | StackFlag.APPROXIMATE, StackFlag.ATTACHED],
    )
    found = health(profile)
    assert (found.unresolved_leaf_ratio, found.unresolved_ratio) == (0.5, 0.75)
    assert (found.truncated_ratio, found.approximate_ratio, found.attached_ratio) == (0.25, 0.25, 0.25)
    assert found.frameless_ratio == 0.25


def test_generated_code_without_an_op_is_told_apart() -> None:
    """Its op is in the stack by its own function, or by an op trace."""
    code, caller = Frame("[generated code]", kind=FrameKind.GENERATED), Frame("start_thread", kind=FrameKind.NATIVE)
    own = Frame("tensorflow::MatMulOp<float>::Compute(tensorflow::OpKernelContext*)", kind=FrameKind.NATIVE)
    traced = Frame("dense/MatMul:MatMul", module=OP_TRACE, kind=FrameKind.FRAMEWORK)
    stacks = [[caller, code], [caller, own, code], [caller, traced, code], [caller]]
    found = health(of_samples([(0, stack) for stack in stacks], flags=[StackFlag.ATTACHED] * 3 + [StackFlag.WHOLE]))
    assert (found.attached_ratio, found.without_op_ratio) == (0.75, 0.25)


def test_idle_tasks_are_nobodys_work() -> None:
    """Threads of pid 0, and stacks whose root is the idle process; a program of that name is not."""
    profile = of_samples([(0, [Frame("f")]), (1, [Frame("f")]), (2, [Frame("f")])], threads=[0, 1, 2])
    threads = (Thread(0, 0, "swapper"), Thread(9, 9, "swapper"), Thread(9, 10, "job"))
    busy, idle = without_idle(replace(profile, threads=threads))
    assert (idle, busy.total) == (1, 2)
    busy, idle = without_idle(of_text({"swapper;cpu_idle": 7, "swapper/3;cpu_idle": 1, "job;swapper": 2}))
    assert (idle, busy.total) == (8, 2)
    untouched = of_text({"a": 1})
    assert without_idle(untouched) == (untouched, 0.0)
