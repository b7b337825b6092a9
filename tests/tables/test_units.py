"""Numbers become text in one place."""

import pytest

from stepscope.tables.units import format_bytes, format_ns, format_number_of, format_rate, format_ratio, format_times


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 ns"),
        (7, "7 ns"),
        (999, "999 ns"),
        (1_500, "1.5 us"),
        (78_900_000, "78.9 ms"),
        (1_234_000_000, "1.23 s"),
        (125_000_000_000, "125 s"),
        (-2_500_000, "-2.5 ms"),
    ],
)
def test_a_duration_keeps_three_digits(value: int, text: str) -> None:
    """A duration is printed with three significant digits in the largest unit that it reaches."""
    assert format_ns(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0 B"), (512, "512 B"), (3 << 20, "3 MiB"), (1536, "1.5 KiB"), (5 << 30, "5 GiB")]
)
def test_a_size_is_binary(value: int, text: str) -> None:
    """A size is printed in binary units."""
    assert format_bytes(value) == text


@pytest.mark.parametrize(("value", "text"), [(0, "0 %"), (0.003, "0.3 %"), (0.61, "61 %"), (1.0, "100 %")])
def test_a_ratio_is_a_percentage(value: float, text: str) -> None:
    """A share is printed as percent, below ten percent with one digit."""
    assert format_ratio(value) == text


@pytest.mark.parametrize(("value", "text"), [(1812.4, "1,812"), (12.74, "12.7"), (0.5, "0.50")])
def test_a_rate_has_a_thousands_separator(value: float, text: str) -> None:
    """A rate keeps three digits and separates thousands."""
    assert format_rate(value) == text


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [("1", "CPUs", "1 CPU"), ("0.65", "CPUs", "0.65 CPUs"), ("1", "processes", "1 process"), ("0", "lines", "0 lines")],
)
def test_one_thing_is_not_many(number: str, unit: str, text: str) -> None:
    """A number before a plural word: one thing has no plural."""
    assert format_number_of(number, unit) == text


@pytest.mark.parametrize(("rate", "text"), [(1, "once a step"), (0.998, "once a step"), (2.5, "2.5 times a step")])
def test_once_is_not_1_times(rate: float, text: str) -> None:
    """How often something happens in each."""
    assert format_times(rate, "step") == text
