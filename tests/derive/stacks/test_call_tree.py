"""Totals over trees and functions, merging, cutting: no weight is lost, none is counted twice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.derive.stack_profiles import lines_of, of_samples, of_text

from stepscope.derive.stacks import call_tree, drawn_tree, merge_profiles
from stepscope.tables.stacks import Frame, StackFlag

CHAINS = st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=6), min_size=1, max_size=25)


@given(CHAINS)
def test_total_is_self_and_the_children(chains: list[list[str]]) -> None:
    """At every stack; the roots' totals are the whole."""
    profile = of_samples([(i, [Frame(name) for name in chain]) for i, chain in enumerate(chains)])
    totals = call_tree.stack_totals(profile, profile.samples.weight)
    children = np.zeros(len(totals.total))
    for stack, parent in enumerate(profile.stacks.parent.tolist()):
        if parent >= 0:
            children[parent] += totals.total[stack]
    assert np.array_equal(totals.total, totals.self_weight + children)
    assert totals.total[profile.stacks.parent < 0].sum() == len(chains)


@given(CHAINS)
def test_a_function_counts_a_sample_once(chains: list[list[str]]) -> None:
    """However often it stands on the stack: its total is the number of samples that it is on."""
    profile = of_samples([(i, [Frame(name, line=j) for j, name in enumerate(chain)]) for i, chain in enumerate(chains)])
    keys, shown = call_tree.function_keys(profile.frames)
    totals = call_tree.function_totals(profile, profile.samples.weight, keys)
    for i, function in enumerate(shown):
        assert totals.total[i] == sum(function.function in chain for chain in chains)
        assert totals.self_weight[i] == sum(chain[-1] == function.function for chain in chains)


@given(CHAINS, CHAINS)
def test_merged_profiles_say_what_both_said(one: list[list[str]], other: list[list[str]]) -> None:
    """Windows of one event add up, stack by stack and thread by thread."""
    profiles = [of_samples([(i, [Frame(n) for n in c]) for i, c in enumerate(chains)]) for chains in (one, other)]
    both = lines_of(merge_profiles.merged(profiles))
    lines = [lines_of(profile) for profile in profiles]
    assert both == {line: sum(of.get(line, 0) for of in lines) for line in {*lines[0], *lines[1]}}


def test_merged_threads_stay_apart() -> None:
    """A thread is known by its numbers and name, whichever window it is in."""
    a = of_samples([(0, [Frame("f")]), (1, [Frame("f")])], threads=[0, 1])
    b = of_samples([(2, [Frame("f")])])
    both = merge_profiles.merged([a, b])
    assert [both.threads[i].name for i in both.samples.thread.tolist()] == ["t0", "t1", "t0"]


def test_pairs_meet_whatever_differs_in_place() -> None:
    """Another folder or another line is the same function; another module is another one."""
    before = of_samples([(0, [Frame("step", "/old/train.py", 4), Frame("f", module="/a/lib.so")])])
    after = of_samples([(0, [Frame("step", "/new/train.py", 9), Frame("f", module="/b/lib.so")])])
    other = of_samples([(0, [Frame("step", "/new/train.py", 9), Frame("f", module="/b/other.so")])])
    pair = merge_profiles.paired(before, after, same=merge_profiles.function_of)
    assert pair.before.samples.stack.tolist() == pair.after.samples.stack.tolist()
    pair = merge_profiles.paired(before, other, same=merge_profiles.function_of)
    assert pair.before.samples.stack.tolist() != pair.after.samples.stack.tolist()


def test_drawn_keeps_truncated_stacks_apart() -> None:
    """The same frames, once whole and once truncated, are two stacks; nothing is a stack too."""
    frames = [Frame("f"), Frame("g")]
    profile = of_samples(
        [(0, frames), (1, frames), (2, [])], flags=[StackFlag.WHOLE, StackFlag.TRUNCATED, StackFlag.WHOLE]
    )
    drawn = drawn_tree.drawn(profile)
    chains = [tuple(f.function for f in drawn.frames_of(s)) for s in drawn.samples.stack.tolist()]
    assert chains == [("f", "g"), ("[truncated]", "f", "g"), ("[unknown]",)]


@given(CHAINS, st.integers(1, 12))
def test_a_cut_loses_no_weight(chains: list[list[str]], most: int) -> None:
    """What is merged stays below the caller that is kept, and is no more than stated."""
    profile = drawn_tree.drawn(of_samples([(i, [Frame(n) for n in c]) for i, c in enumerate(chains)]))
    smaller, numbers, merged = drawn_tree.cut(profile, profile.samples.weight, most)
    assert smaller.total == profile.total
    assert len(numbers) == len(profile.stacks)
    if merged is None:
        assert len(profile.stacks) <= most
        return
    totals = call_tree.stack_totals(smaller, smaller.samples.weight).total
    small = [smaller.frames[f] == drawn_tree.SMALL for f in smaller.stacks.frame.tolist()]
    kept = len(small) - sum(small)
    assert kept <= most
    assert sum(totals[s] for s in range(len(small)) if small[s]) == pytest.approx(merged.weight_ratio * profile.total)
    for old, new in enumerate(numbers.tolist()):
        functions = [f.function for f in profile.frames_of(old)]
        shown = [f.function for f in smaller.frames_of(new)]
        assert functions[: len(shown) - 1] == shown[:-1]


def test_a_cut_takes_the_smallest() -> None:
    """Small stacks beside a large one are one box."""
    profile = drawn_tree.drawn(of_text({"m;big": 90} | {f"m;small{i}": 1 for i in range(10)}))
    smaller, _, merged = drawn_tree.cut(profile, profile.samples.weight, 3)
    assert lines_of(smaller) == {"m;big": 90, "m;[too small to draw]": 10}
    assert merged is not None
    assert (merged.stacks, merged.weight_ratio) == (10, 0.1)
