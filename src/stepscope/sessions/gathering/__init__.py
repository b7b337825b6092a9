"""Sessions of many hosts in one place: sent there in parts, and taken from there to be joined (docs/decisions/0070)."""
