"""What each loop of the interpreter ran is filled up from samples, and only where they leave no doubt."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.derive.stack_profiles import of_samples

from stepscope.derive.stacks.interpreter_runs import InterpreterRun, SampledChains, filled
from stepscope.derive.stacks.splice import FAR_NS, NEAR_NS, spliced
from stepscope.tables.made_frames import NOT_SAMPLED
from stepscope.tables.stacks import Frame, FrameKind, StackFlag, StackProfile

LOOP = Frame("_PyEval_EvalFrameDefault", module="/lib/libpython3.12.so.1.0", kind=FrameKind.NATIVE)
VECTOR = Frame("_PyEval_Vector", module="/lib/libpython3.12.so.1.0", kind=FrameKind.NATIVE)
START = Frame("_start", module="/bin/python3", kind=FrameKind.NATIVE)
DISPATCH = Frame("pybind11::dispatch", module="/tf/_pywrap_x.so", kind=FrameKind.NATIVE)
MATMUL = Frame("tensorflow::MatMul", module="/tf/libtensorflow_cc.so.2", kind=FrameKind.NATIVE)
AT = 10_000_000_000
WHOLE, CUT, NEAR = int(StackFlag.WHOLE), int(StackFlag.TRUNCATED), int(StackFlag.APPROXIMATE)


def py(function: str, line: int = 1) -> Frame:
    return Frame(function, file="/x/train.py", line=line, kind=FrameKind.PYTHON)


MODULE, FIT, STEP, CALL, OTHER = py("<module>", 3), py("fit", 7), py("step", 5), py("call", 9), py("other")


def native(*chain: Frame, at: int = AT, flag: int = WHOLE) -> StackProfile:
    return of_samples([(at, chain)], flags=[flag])


def seen(*rows: tuple[int, Sequence[Frame]]) -> StackProfile:
    return of_samples(rows, flags=[WHOLE] * len(rows))


def names(profile: StackProfile) -> list[str]:
    return [frame.function for frame in profile.frames_of(int(profile.samples.stack[0]))]


def test_where_each_loop_runs_one_function_nothing_is_needed() -> None:
    """CPython 3.10: names and lines are of the moment, the stack is exact."""
    found = spliced(native(START, LOOP, MODULE, VECTOR, LOOP, FIT, DISPATCH, LOOP, CALL, MATMUL), [])
    assert names(found) == ["_start", "<module>", "fit", "pybind11::dispatch", "call", "tensorflow::MatMul"]
    assert found.samples.flags.tolist() == [WHOLE]


def test_functions_of_the_very_moment_are_exact() -> None:
    """Several in one loop, each with its line: nothing close by is asked; without lines they are approximate."""
    samples = seen((AT, (MODULE, FIT._replace(line=99), OTHER, CALL)))
    for line, flag in ((8, WHOLE), (0, WHOLE | NEAR)):
        found = spliced(native(START, LOOP, MODULE, FIT._replace(line=line), CALL, MATMUL), [samples])
        assert names(found) == ["_start", "<module>", "fit", "call", "tensorflow::MatMul"]
        assert found.samples.flags.tolist() == [flag]
        assert found.frames_of(int(found.samples.stack[0]))[2].line == line


def test_one_that_is_not_known_among_them() -> None:
    """A sample that has it at its place tells; without one the stack is cut there."""
    chain = (START, LOOP, MODULE, LOOP, MATMUL)
    found = spliced(native(*chain), [seen((AT + NEAR_NS, (MODULE, CALL, OTHER)))])
    assert names(found) == ["_start", "<module>", "call", "tensorflow::MatMul"]
    assert found.samples.flags.tolist() == [WHOLE | NEAR]
    found = spliced(native(*chain), [])
    assert names(found) == ["_start", "<module>", NOT_SAMPLED.function, "tensorflow::MatMul"]
    assert found.samples.flags.tolist() == [CUT]


def test_a_near_sample_that_leads_through_all_functions() -> None:
    """Frames further in are left out; the line of a function that is known is its own, not the sample's."""
    chain = (START, LOOP, NOT_SAMPLED, py("fit", 8), DISPATCH, LOOP, NOT_SAMPLED, CALL, MATMUL)
    samples = seen((AT, (MODULE, OTHER)), (AT + 5, (MODULE, FIT, STEP, CALL, OTHER)), (AT + 9, (MODULE, FIT, CALL)))
    found = spliced(native(*chain, at=AT + 4), [samples])
    frames = found.frames_of(int(found.samples.stack[0]))
    assert [f.function for f in frames] == [
        "_start",
        "<module>",
        "fit",
        "pybind11::dispatch",
        "step",
        "call",
        MATMUL.function,
    ]
    assert frames[2].line == 8
    assert found.samples.flags.tolist() == [WHOLE | NEAR]


@pytest.mark.parametrize("stack", [(MODULE, OTHER), (MODULE, CALL, FIT)])
def test_a_near_sample_of_something_else_is_not_taken(stack: Sequence[Frame]) -> None:
    """However near it is: the functions that are known are all that is named."""
    chain = (START, LOOP, NOT_SAMPLED, FIT, LOOP, NOT_SAMPLED, CALL, MATMUL)
    found = spliced(native(*chain), [seen((AT, stack))])
    assert names(found)[-5:] == ["fit", NOT_SAMPLED.function, "call", MATMUL.function][-5:] or "fit" in names(found)
    assert found.samples.flags.tolist()[0] & CUT
    assert "other" not in names(found)


def test_between_two_functions_that_never_had_others() -> None:
    """A callback that nobody sampled at that moment: samples of any thread at any time say what it comes through."""
    chain = (START, LOOP, NOT_SAMPLED, py("call", 4), MATMUL)
    always = seen((AT + FAR_NS * 2, (FIT, py("step", 5), py("call", 9))), (AT + FAR_NS * 3, (FIT, py("step", 6), CALL)))
    found = spliced(native(*chain), [always])
    frames = found.frames_of(int(found.samples.stack[0]))
    assert [(f.function, f.line) for f in frames[1:4]] == [("fit", 7), ("step", 0), ("call", 4)]
    assert found.samples.flags.tolist() == [WHOLE | NEAR]
    doubt = seen((AT + FAR_NS * 2, (FIT, STEP, CALL)), (AT + FAR_NS * 3, (FIT, CALL)))
    found = spliced(native(*chain), [doubt])
    assert names(found) == ["_start", NOT_SAMPLED.function, "call", MATMUL.function]
    assert found.samples.flags.tolist() == [CUT]


def test_a_stack_whose_outer_part_is_missing_stays_cut() -> None:
    """What its first loop came through cannot be known; what is known is named."""
    chain = (DISPATCH, LOOP, NOT_SAMPLED, FIT, LOOP, NOT_SAMPLED, CALL, MATMUL)
    found = spliced(native(*chain, flag=CUT), [seen((AT, (MODULE, FIT, STEP, CALL)))])
    assert names(found) == [DISPATCH.function, NOT_SAMPLED.function, "fit", "step", "call", MATMUL.function]
    assert found.samples.flags.tolist() == [CUT | NEAR]


def test_our_own_frames_are_left_out() -> None:
    """Wrappers around what is measured are in samples and loops."""
    wrap = py("_wrap")._replace(file="/run/agent/probes/keras.py")
    chain = (START, LOOP, MODULE, LOOP, wrap, LOOP, CALL, MATMUL)
    assert names(spliced(native(*chain), [], ours="/run/agent")) == ["_start", "<module>", "call", MATMUL.function]


def test_the_thread_that_samples_is_named_as_before() -> None:
    """Its functions are nobody's."""
    found = spliced(native(START, LOOP, NOT_SAMPLED, CALL), [], agents={(7, 7)})
    assert names(found) == ["_start", "[stepscope's agent]"]


def test_recursion_is_in_doubt_unless_a_sample_tells() -> None:
    """Functions that call themselves stand in samples more than once."""
    chains = SampledChains([(MODULE, CALL), (MODULE, CALL, CALL)])
    runs = [InterpreterRun(CALL, alone=False)]
    assert filled(runs, [], chains, rooted=True).whole == (False,)
    told = filled(runs, [(MODULE, CALL, CALL)], chains, rooted=True)
    assert told.parts == ((MODULE, CALL),)
    assert told.sampled
