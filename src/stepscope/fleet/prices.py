"""What an hour costs, from a TOML file of the user's.

currency = "EUR"
host_hour = 0.40          # an hour of wall time of a job, on any host
cpu_hour = 0.02           # an hour of CPU time
device_hour = 2.10        # an hour of wall time, for each GPU
[devices]
"NVIDIA H200" = 3.80      # the same for GPUs of one name
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

from msgspec import Struct, field

from stepscope.tables.errors import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from pathlib import Path

_NUMBERS = ("host_hour", "cpu_hour", "device_hour")


class Prices(Struct, frozen=True, kw_only=True):
    """Amounts of money, in one currency."""

    currency: str = ""
    """"": no prices are known."""
    host_hour: float = 0.0
    cpu_hour: float = 0.0
    device_hour: float = 0.0
    devices: dict[str, float] = field(default_factory=dict)

    def of_device(self, name: str) -> float:
        """The price of an hour of a GPU."""
        return self.devices.get(name, self.device_hour)


def read(path: Path) -> Prices:
    """The prices of a file.

    Raises:
        UsageError: it cannot be read, or holds something else.
    """
    try:
        with path.open("rb") as stream:
            found = tomllib.load(stream)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"--prices {path}: {error}") from error
    unknown = sorted(set(found) - {*_NUMBERS, "currency", "devices"})
    if unknown:
        raise UsageError(
            f"--prices {path}: unknown {unknown[0]!r}; expected {', '.join(_NUMBERS)}, currency, [devices]"
        )
    devices = found.get("devices", {})
    if not isinstance(devices, dict):
        raise UsageError(f"--prices {path}: devices is no table; expected [devices] with a price for each name")
    return Prices(
        currency=str(found.get("currency", "money")),
        **{name: _price(path, name, found.get(name, 0.0)) for name in _NUMBERS},
        devices={name: _price(path, name, value) for name, value in devices.items()},
    )


def _price(path: Path, name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        raise UsageError(f"--prices {path}: {name} is {value!r}; expected an amount of money, 0 or more")
    return float(value)
