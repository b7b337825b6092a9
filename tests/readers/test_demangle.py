"""Demangled symbols of C++ and Rust."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.readers.demangle import demangle
from stepscope.readers.stacks import perf_script

RUST = {
    "_RNvCs8K9WJNlS7Dz_5trace17multiply_matrices": "trace::multiply_matrices",
    "_RINvNtCse0yjq9ZQveU_3std2rt10lang_startuECs8K9WJNlS7Dz_5trace": "std::rt::lang_start::<()>",
    "_RNvXs0_NtNtCsTACXlTRjQ_4core5slice5indexjINtB5_10SliceIndexSdE5indexCs8K9WJNlS7Dz_5trace": (
        "<usize as core::slice::index::SliceIndex<[f64]>>::index"
    ),
    "_RNCNvC1a4mains_0": "a::main::{closure#1}",
    "_RIC3fooKj1f_E": "foo::<31>",
    "_RMs_C3fooFUKCmEu": '<unsafe extern "C" fn(u32)>',
    "_RYDNtC3foo3BarEL_NtC1a1b": "<dyn foo::Bar as a::b>",
    "_RNvC6_123foo3bar": "123foo::bar",
    "_RNvC1au8gdel_5qa": "a::g\u00f6del",
    "_RNvC1a3foo.llvm.9D1C9369": "a::foo",
    "_ZN4core3ptr13drop_in_place17h0123456789abcdefE": "core::ptr::drop_in_place",
    "_ZN61_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE": (
        "<alloc::vec::Vec<T> as core::fmt::Debug>::fmt"
    ),
}
"""Symbols of RFC 2603 and of rustc 1.8x, and their names in the short form of rustc-demangle."""
CPP = {
    "_ZN10tensorflow8OpKernel7ComputeEPNS_15OpKernelContextE": (
        "tensorflow::OpKernel::Compute(tensorflow::OpKernelContext*)"
    ),
    "_ZdlPv@plt": "operator delete(void*)@plt",
}


@pytest.mark.parametrize("symbol", [*RUST, *CPP])
def test_names(symbol: str) -> None:
    """A mangled symbol is shown as its source names it."""
    assert demangle(symbol) == {**RUST, **CPP}[symbol]


@pytest.mark.parametrize(
    "symbol", ["", "main", "_R", "_RB_", "_RNvC3foo", "_RNvB0_3foo", "_ZN3foo", "_R0NvC1a1b", "_RNvC1ax1b"]
)
def test_others_stay(symbol: str) -> None:
    """What is no symbol, or breaks off, is unchanged."""
    assert demangle(symbol) == symbol


def test_a_bomb_stays() -> None:
    """Back references that double what they name at each level end at a bound."""
    bomb = "_RIC1aT" + "".join("TB7_B7_E" if i == 0 else f"TB{'%x' % (6 + i)}_E" for i in range(5)) + "EE"
    assert len(demangle(bomb)) < 10_000
    assert demangle("_RI" * 3000) == "_RI" * 3000


@given(st.text("_RNvCsIMXYTSAEBKLpn0123456789abc", max_size=60))
def test_any_text_has_a_name(text: str) -> None:
    """Nothing that begins as a symbol raises."""
    assert isinstance(demangle(f"_R{text}"), str)


def test_perf_script_shows_them() -> None:
    """Frames of perf script files that perf did not demangle have readable names."""
    mangled = "_ZN10tensorflow8OpKernel7ComputeEPNS_15OpKernelContextE"
    lines = f"tf 7/7 1.000001: 1 cycles: \n\t    7f0000000001 {mangled}+0x1 (/a.so)\n"
    lines += "\t    7f0000000002 _RNvC1a3foo+0x2 (/b.so)\n\n"
    (profile,) = perf_script.read(lines.encode(), where="x")
    names = [frame.function for frame in profile.frames_of(int(profile.samples.stack[0]))]
    assert names == ["a::foo", CPP[mangled]]
