"""Records what one tree of stepscope answers about stored sessions: reports, REST answers, and the checker's.

Knows the commands and the OpenAPI document alone, so that any tree can be asked. ``scripts/net.sh`` compares two.

Usage: PYTHONPATH=TREE/src python scripts/net_answers.py SESSIONS OUT
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import TypeAlias

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

FORMATS = ("json", "text", "md")
LEFT_OUT = frozenset(
    {"getPack", "getEvents", "metrics", "listJobs", "getJob", "listCaptures", "compare", "compareFlame", "listSessions"}
)
"""Operations on running jobs, on two sessions, on those of the whole host, and downloads of what is on disk."""
VALUES = {"tile": "0", "level": "0", "group": "0", "lane": "0", "from_ns": "0", "to_ns": str(2**62), "q": "step"}
"""Values of parameters without a default."""
CHANGING = re.compile(r"build=[^\"&]*|\"generated\": ?\"[^\"]*\"|\"layout_ms\": ?[0-9.]+")
PROGRESS = re.compile(rb"^stepscope: analysing .*\n\n?", re.MULTILINE)
"""Patterns of what differs between two answers of the same tree: what a slow command says of its progress, too."""
START_S = 30


def command(*words: str) -> bytes:
    """Output of a command, with its exit code at the end."""
    done = subprocess.run([sys.executable, "-m", "stepscope", *words], capture_output=True, check=False)
    return done.stdout + PROGRESS.sub(b"", done.stderr) + f"\nexit {done.returncode}\n".encode()


def ask(address: str) -> bytes:
    """The answer of the server, even a refusal."""
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {os.environ['STEPSCOPE_TOKEN']}"})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            content: bytes = answer.read()
    except urllib.error.HTTPError as refused:
        content = f"{refused.code}\n".encode() + refused.read()
    return content


def served(sessions: Path, out: Path) -> None:
    """Send every GET request that a session answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "stepscope", "view", "--port", str(port), str(sessions)]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    root = f"http://127.0.0.1:{port}/api/v1"
    try:
        _wait(root)
        operations = json.loads(ask(root + "/openapi.json"))["paths"]
        listed = json.loads(ask(root + "/sessions?limit=100"))["items"]
        ours = [one for one in listed if str(one["path"]).startswith(str(sessions))]
        for session in sorted(ours, key=lambda one: str(one["name"])):
            folder = out / "rest" / str(session["name"])
            folder.mkdir(parents=True)
            build = json.loads(ask(f"{root}/sessions/{session['key']}/timeline?wait_s=10")).get("build", "")
            values = {**VALUES, "key": session["key"], "build": build}
            for path, methods in sorted(operations.items()):
                operation = methods.get("get")
                if operation is None or operation["operationId"] in LEFT_OUT:
                    continue
                (folder / operation["operationId"]).write_bytes(ask(_address(root, path, operation, values)))
    finally:
        server.terminate()
        server.wait()


def _wait(root: str) -> None:
    for _ in range(START_S * 10):
        try:
            ask(root + "/health")
        except OSError:
            time.sleep(0.1)
        else:
            return
    sys.exit("the server did not answer")


def _address(root: str, path: str, operation: dict[str, list[dict[str, str]]], values: dict[str, str]) -> str:
    asked = {p["name"]: values[p["name"]] for p in operation.get("parameters", ()) if p["name"] in values}
    for name in re.findall(r"{(\w+)}", path):
        path = path.replace(f"{{{name}}}", str(asked.pop(name, "")))
    return root + path.removeprefix("/api/v1") + "?" + urllib.parse.urlencode(asked)


def main() -> None:
    """Run every request."""
    sessions, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(parents=True)
    for session in sorted(sessions.glob("*.stepscope")):
        for form in FORMATS:
            (out / f"{session.stem}.{form}").write_bytes(command("report", "--format", form, str(session)))
    (out / "check.json").write_bytes(command("check", "--format", "json", "bench"))
    served(sessions, out)
    for path in out.rglob("*"):
        if path.is_file():
            text = path.read_bytes()
            path.write_bytes(CHANGING.sub("", text.decode()).encode() if text[:1] in b"{[" else text)


if __name__ == "__main__":
    main()
