"""Prices of hours from a file of the user's."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.fleet.prices import Prices, read
from stepscope.tables.errors import UsageError

WHOLE = """
currency = "EUR"
host_hour = 0.4
device_hour = 2
[devices]
"NVIDIA H200" = 3.8
"""


def test_read(tmp_path: Path) -> None:
    """A device has the price of its name, else of any."""
    path = tmp_path / "prices.toml"
    path.write_text(WHOLE)
    prices = read(path)
    assert prices == Prices(currency="EUR", host_hour=0.4, device_hour=2.0, devices={"NVIDIA H200": 3.8})
    assert (prices.of_device("NVIDIA H200"), prices.of_device("L4")) == (3.8, 2.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("host_hour = -1", "host_hour is -1; expected an amount"),
        ("host_hour = true", "host_hour is True"),
        ("cpu_hour = nan", "cpu_hour is nan"),
        ("gpu_hour = 1", "unknown 'gpu_hour'; expected host_hour"),
        ("devices = 3", "devices is no table"),
        ("[devices]\na = 'x'", "a is 'x'"),
        ("host_hour = ", "Invalid value"),
    ],
)
def test_refused(tmp_path: Path, text: str, said: str) -> None:
    """What is wrong, and what was expected."""
    path = tmp_path / "prices.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        read(path)
    with pytest.raises(UsageError, match="No such file"):
        read(tmp_path / "absent.toml")
