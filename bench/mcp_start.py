"""How much later `stepscope mcp` answers than the SDK's own hello server, and how much more memory it takes.

Both are started in turn, by the same Python, and asked for their tools by the lines that a client writes. The hello
server is the SDK's first example: one tool that adds two numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "mcp.md"
HELLO = """
from mcp.server import MCPServer
server = MCPServer("Demo")
@server.tool()
def add(a: int, b: int) -> int:
    '''Add two numbers'''
    return a + b
server.run(transport="stdio")
"""
SERVERS = {"hello": ["-c", HELLO], "stepscope mcp": ["-m", "stepscope", "mcp"]}
CLIENT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
MOST_S, MOST_MB = 0.2, 20.0
"""Most that ours may take above the hello server: seconds until the list of tools, megabytes at the peak."""
HEAD = """# Start of `stepscope mcp`

Printed by `make bench-mcp ARGS=--write`. `stepscope mcp` and the first example of the SDK {version} (one tool, which
adds two numbers) are started in turn, {rounds} rounds, Python {python}. *until tools*: from the start to the answer to
`tools/list`, wall time; *CPU*: user and system time until then; *peak*: most resident memory until then. Medians,
with the smallest and the largest in brackets. The last line is the median of the rounds' differences; it may be
{most_s} s and {most_mb:.0f} MB.

| server | until tools | CPU | peak |
|---|---|---|---|
"""
Figures = tuple[float, float, float]
"""Seconds of wall time, seconds of CPU time, megabytes."""


def main() -> int:
    """Measure, print, and store if asked."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=10)
    options.add_argument("--write", action="store_true")
    asked = options.parse_args()
    rounds = [{name: measure(words) for name, words in SERVERS.items()} for _ in range(asked.rounds + 1)][1:]
    differences = [tuple(b - a for a, b in zip(*one.values(), strict=True)) for one in rounds]
    text = head(asked.rounds)
    for name in SERVERS:
        text += f"| {name} | {row([one[name] for one in rounds])} |\n"
    text += f"| difference | {row(differences)} |\n"
    sys.stdout.write(text)
    if asked.write:
        PAGE.write_text(text, encoding="utf-8")
    wall, _, memory = (statistics.median(column) for column in zip(*differences, strict=True))
    return int(wall > MOST_S or memory > MOST_MB)


def head(rounds: int) -> str:
    """The page up to its table."""
    python = ".".join(map(str, sys.version_info[:3]))
    return HEAD.format(version=version("mcp"), rounds=rounds, python=python, most_s=MOST_S, most_mb=MOST_MB)


def row(figures: list[tuple[float, ...]] | list[Figures]) -> str:
    """The cells of a row: medians and ranges."""
    cells = []
    for column, unit, digits in zip(zip(*figures, strict=True), ("s", "s", "MB"), (2, 2, 1), strict=True):
        low, high = min(column), max(column)
        cells.append(f"{statistics.median(column):.{digits}f} {unit} ({low:.{digits}f} to {high:.{digits}f})")
    return " | ".join(cells)


def measure(words: list[str]) -> Figures:
    """Start a server, ask for its tools, end it."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    began = time.perf_counter()
    server = subprocess.Popen(
        [sys.executable, *words], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    if server.stdin is None or server.stdout is None:
        raise RuntimeError("a server without pipes")
    for number, (method, params) in enumerate((("initialize", CLIENT), ("tools/list", {})), 1):
        server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        if "result" not in answer:
            raise RuntimeError(f"{method}: {answer}")
        if number == 1:
            server.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    wall = time.perf_counter() - began
    status = Path(f"/proc/{server.pid}/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1000
    ticks = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    cpu = (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")
    server.stdin.close()
    server.wait()
    return wall, cpu, peak


if __name__ == "__main__":
    sys.exit(main())
