"""Python's frames stand where the interpreter runs, and what nobody sampled is said."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from tests.derive.stack_profiles import of_samples

from stepscope.derive.stacks.health import health
from stepscope.derive.stacks.splice import ALWAYS, FAR_NS, NEAR_NS, spliced
from stepscope.tables.stacks import Frame, FrameKind, StackFlag, StackProfile

LOOP = Frame("_PyEval_EvalFrameDefault", module="/lib/libpython3.11.so.1.0", kind=FrameKind.NATIVE)
VECTOR = Frame("_PyEval_Vector", module="/lib/libpython3.11.so.1.0", kind=FrameKind.NATIVE)
START = Frame("_start", module="/bin/python3", kind=FrameKind.NATIVE)
MATMUL = Frame("tensorflow::MatMul", module="/tf/libtensorflow_cc.so.2", kind=FrameKind.NATIVE)
DISPATCH = Frame("pybind11::dispatch", module="/tf/_pywrap_x.so", kind=FrameKind.NATIVE)
POOL = Frame("start_thread", module="/lib/libc.so.6", kind=FrameKind.NATIVE)
KERNEL = Frame("clear_page", module="[kernel]", kind=FrameKind.KERNEL)
AT = 10_000_000_000
WHOLE = int(StackFlag.WHOLE)
OURS = "/run/agent"


def py(function: str, line: int = 1, file: str = "/x/train.py") -> Frame:
    return Frame(function, file=file, line=line, kind=FrameKind.PYTHON)


MODULE, FIT, CALL = py("<module>"), py("fit", 7), py("call", 9)
SIMPLE = (START, LOOP, MATMUL)


def native(*samples: tuple[int, Sequence[Frame]], threads: Sequence[int] = ()) -> StackProfile:
    return of_samples(samples, threads=threads, flags=[WHOLE] * len(samples))


def names(profile: StackProfile, sample: int = 0) -> list[str]:
    return [frame.function for frame in profile.frames_of(int(profile.samples.stack[sample]))]


def test_python_to_native_to_kernel_in_one_stack() -> None:
    """The nearest sample gives functions and lines; the stack stays whole and is approximate."""
    seen = of_samples([(AT - 5_000_000, (MODULE, FIT)), (AT + 9_000_000, (MODULE, CALL))])
    found = spliced(native((AT, (*SIMPLE, KERNEL))), [seen])
    assert names(found) == ["_start", "<module>", "fit", "tensorflow::MatMul", "clear_page"]
    assert [frame.line for frame in found.frames_of(int(found.samples.stack[0]))][1:3] == [1, 7]
    assert found.samples.flags.tolist() == [StackFlag.WHOLE | StackFlag.APPROXIMATE]
    assert health(found).unnamed_python_ratio == 0


def test_as_many_frames_of_both_keep_what_native_code_calls_between() -> None:
    """CPython 3.10, or calls through C only: each frame of the loop is one function."""
    chain = (START, LOOP, VECTOR, DISPATCH, LOOP, MATMUL)
    found = spliced(native((AT, chain)), [of_samples([(AT, (MODULE, CALL))])])
    assert names(found) == ["_start", "<module>", "pybind11::dispatch", "call", "tensorflow::MatMul"]


def test_more_frames_of_python_stand_together() -> None:
    """CPython 3.11 and later: nothing says which frame of the loop runs which."""
    chain = (START, LOOP, VECTOR, LOOP, MATMUL)
    found = spliced(native((AT, chain)), [of_samples([(AT, (MODULE, FIT, CALL))])])
    assert names(found) == ["_start", "<module>", "fit", "call", "tensorflow::MatMul"]


def test_a_sample_with_fewer_frames_than_the_loop_is_of_another_moment() -> None:
    """The other neighbour is taken."""
    seen = of_samples([(AT - 1, (MODULE,)), (AT + 1000, (MODULE, FIT, CALL))])
    found = spliced(native((AT, (START, LOOP, VECTOR, LOOP, MATMUL))), [seen])
    assert names(found)[1:4] == ["<module>", "fit", "call"]


@pytest.mark.parametrize(("away", "whole"), [(NEAR_NS, True), (NEAR_NS + 1, False)])
def test_how_near_is_near_enough(away: int, whole: bool) -> None:
    """Beyond it only what both neighbours share is believed, and the stack counts as cut."""
    seen = of_samples([(AT - away, (MODULE, FIT)), (AT + away, (MODULE, CALL))])
    found = spliced(native((AT, SIMPLE)), [seen])
    inner = ["fit"] if whole else ["[Python, not sampled]"]
    assert names(found) == ["_start", "<module>", *inner, "tensorflow::MatMul"]
    flag = StackFlag.WHOLE if whole else StackFlag.TRUNCATED
    assert found.samples.flags.tolist() == [flag | StackFlag.APPROXIMATE]


@pytest.mark.parametrize("seen", [[], [(AT + FAR_NS + 1, (MODULE,))]], ids=["no-samples", "far"])
def test_what_nobody_sampled_stays_and_is_counted(seen: list[tuple[int, Sequence[Frame]]]) -> None:
    """The interpreter stays in the stack; its share stands in every picture."""
    found = spliced(native((AT, SIMPLE), (AT, (START, MATMUL))), [of_samples(seen)] if seen else [])
    assert names(found) == ["_start", LOOP.function, "tensorflow::MatMul"]
    assert found.samples.flags.tolist() == [WHOLE, WHOLE]
    assert health(found).unnamed_python_ratio == 0.5


def test_threads_are_not_mixed_up() -> None:
    """A sample of another thread, or of another process, says nothing."""
    other = of_samples([(AT, (MODULE,)), (AT, (FIT,))], threads=[1, 1])
    elsewhere = replace(of_samples([(AT, (MODULE,))]), threads=tuple(t._replace(pid=99) for t in other.threads))
    assert names(spliced(native((AT, SIMPLE)), [other, elsewhere])) == [frame.function for frame in SIMPLE]


def test_a_pools_callback_that_is_always_the_same() -> None:
    """Callbacks are too short to be seen often: what that native code always calls is whole, on any thread."""
    chain = (POOL, LOOP, MATMUL)
    times = [AT + FAR_NS * i for i in range(2, 2 + ALWAYS)]
    seen = of_samples([(at, (FIT, py("call", at % 7))) for at in times], threads=[1] * ALWAYS)
    found = spliced(native((AT, chain), (AT, chain), (AT, SIMPLE), threads=[0, 1, 0]), [seen])
    assert names(found, 0) == names(found, 1) == ["start_thread", "fit", "call", "tensorflow::MatMul"]
    assert names(found, 2) == [frame.function for frame in SIMPLE]
    assert found.samples.flags.tolist() == [*[StackFlag.WHOLE | StackFlag.APPROXIMATE] * 2, WHOLE]


def test_a_pool_with_two_callbacks_shares_what_it_shares() -> None:
    """Which of them it was nobody knows."""
    chain = (POOL, LOOP, MATMUL)
    rows = [(AT + FAR_NS * i, (FIT, CALL if i % 2 else py("other"))) for i in range(2, 6)]
    found = spliced(native((AT, chain)), [of_samples(rows)])
    assert names(found) == ["start_thread", "fit", "[Python, not sampled]", "tensorflow::MatMul"]
    assert found.samples.flags.tolist() == [StackFlag.TRUNCATED | StackFlag.APPROXIMATE]


def test_our_own_thread_and_frames() -> None:
    """The thread that samples is named; wrappers of the agent are counted with the loop's frames and left out then."""
    wrapped = of_samples([(AT, (MODULE, py("_wrap", 3, f"{OURS}/probes/keras.py"), CALL))])
    chain = (START, LOOP, VECTOR, LOOP, DISPATCH, LOOP, MATMUL)
    found = spliced(native((AT, chain), (AT, (POOL, LOOP)), threads=[0, 1]), [wrapped], agents={(7, 8)}, ours=OURS)
    assert names(found, 0) == ["_start", "<module>", "pybind11::dispatch", "call", "tensorflow::MatMul"]
    assert names(found, 1) == ["start_thread", "[stepscope's agent]"]


def test_generated_code_stays_attached() -> None:
    """What is attached never becomes whole."""
    made = replace(native((AT, SIMPLE)))
    made = replace(made, samples=replace(made.samples, flags=made.samples.flags * 0 + StackFlag.ATTACHED))
    found = spliced(made, [of_samples([(AT, (MODULE,))])])
    assert found.samples.flags.tolist() == [StackFlag.ATTACHED | StackFlag.APPROXIMATE]
