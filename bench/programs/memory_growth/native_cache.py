"""A library in C keeps pages in its own cache: a database in memory. Arguments: rounds, a file to make."""

import json
import sqlite3
import sys
import time
from pathlib import Path


def store(base: sqlite3.Connection, key: int) -> None:
    """What grows."""
    base.execute("INSERT INTO part VALUES (?, zeroblob(200000))", (key,))  # keeps


def read(base: sqlite3.Connection, key: int) -> int:
    """What does not."""
    return len(base.execute("SELECT data FROM part WHERE key = ?", (key,)).fetchone()[0])


def main() -> None:
    """Work."""
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE part (key INTEGER PRIMARY KEY, data BLOB)")
    Path(sys.argv[2]).touch()
    for key in range(int(sys.argv[1])):
        store(base, key)
        for back in range(10):
            read(base, max(0, key - back))
        time.sleep(0.01)
    print(json.dumps({"cpu_s": time.process_time()}))


main()
