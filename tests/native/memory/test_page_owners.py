"""Who brought the pages that are held: the last fault of each page, fitted to what the looks show."""

from __future__ import annotations

import mmap

import numpy as np
import pytest

from stepscope.native.memory.page_looks import PageLook
from stepscope.native.memory.page_owners import Faults, grown, held

PAGE = mmap.PAGESIZE
BASE, LATER = 1_000, 9_000
HUGE = 2 << 20


def look(at_ns: int, *runs: tuple[int, int], huge: bool = False) -> PageLook:
    """A look that holds these runs of pages, (first, behind)."""
    edges = np.array(runs, np.int64).reshape(-1, 2) * PAGE
    return PageLook(at_ns=at_ns, start=edges[:, 0], end=edges[:, 1], huge=np.full(len(edges), huge))


def faults(*rows: tuple[int, int], pages: float = 1.0) -> Faults:
    """Faults, (time, page)."""
    at, page = np.array(rows, np.int64).reshape(-1, 2).T
    return Faults(at_ns=at, address=page * PAGE + 8, pages=np.full(len(rows), pages))


def test_growth_is_what_came_and_stayed() -> None:
    """Pages that went again, and those that were there before, do not count."""
    seen = faults((2_000, 10), (3_000, 11), (4_000, 50), (5_000, 3))
    found = grown(seen, look(BASE, (0, 5)), look(LATER, (0, 5), (10, 12)))
    assert found.faults.tolist() == [0, 1]
    assert found.bytes.tolist() == [PAGE, PAGE]
    assert (found.before, found.other, found.total) == (0.0, 0.0, 2 * PAGE)


def test_a_page_is_its_last_toucher_s() -> None:
    """Memory that went and came again belongs to who touched it last before the look, not after it."""
    seen = faults((2_000, 10), (3_000, 10), (9_500, 10))
    assert grown(seen, look(BASE), look(LATER, (10, 11))).faults.tolist() == [1]


def test_samples_are_fitted_within_their_noise() -> None:
    """Each of 100 samples stands for 64 pages; 6,000 pages came: all of them are theirs."""
    seen = faults(*((2_000 + i, 100 + 60 * i) for i in range(100)), pages=64)
    found = grown(seen, look(BASE), look(LATER, (100, 6_100)))
    assert found.bytes.sum() == pytest.approx(6_000 * PAGE)
    assert found.other == 0.0


def test_what_no_fault_brought_is_told() -> None:
    """Memory far beyond what samples stand for was moved there (mremap)."""
    found = grown(faults((2_000, 10)), look(BASE), look(LATER, (10, 11), (500, 600)))
    assert found.bytes.tolist() == [PAGE]
    assert found.other == 100 * PAGE
    nothing = grown(faults(), look(BASE), look(LATER, (500, 600)))
    assert (nothing.bytes.tolist(), nothing.other) == ([], 100 * PAGE)


def test_a_fault_of_a_huge_page_stands_for_all_of_it() -> None:
    """One fault brings 512 pages."""
    found = grown(faults((2_000, 512)), look(BASE), look(LATER, (512, 1024), huge=True), HUGE)
    assert found.bytes.tolist() == [HUGE]


def test_the_highest_moment_holds_what_was_there_before() -> None:
    """Of the pages of the first look, those touched anew have an owner; the rest was there before."""
    seen = faults((2_000, 1), (3_000, 10))
    found = held(seen, look(BASE, (0, 8)), look(LATER, (0, 8), (10, 11)))
    assert sorted(found.faults.tolist()) == [0, 1]
    assert (found.before, found.total) == (7 * PAGE, 9 * PAGE)


def test_looks_share_what_both_hold() -> None:
    """Runs are compared by address."""
    one, other = look(BASE, (0, 10), (20, 30)), look(LATER, (5, 25), (40, 50))
    assert one.shared_bytes(other) == other.shared_bytes(one) == 10 * PAGE
    assert one.runs_of(np.array([0, 10 * PAGE, 29 * PAGE, 99 * PAGE], np.int64)).tolist() == [0, -1, 1, -1]
    assert look(BASE).runs_of(np.array([7], np.int64)).tolist() == [-1]
