"""`stepscope view` as a user starts it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .conftest import PATIENCE_S, TOKEN, answer, command, environment

if TYPE_CHECKING:
    from .recorded import Recorded


def view(*args: str, **env: str) -> subprocess.Popen[str]:
    """Start it."""
    return subprocess.Popen(
        command("view", *args),
        env=environment(**env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_printed_address_opens_the_session(recorded: Recorded) -> None:
    """It leads to the session that was named; its token opens it, nothing else does. Ctrl-C ends it."""
    server = view(str(recorded.path), "--port", "0")
    assert server.stdout is not None
    page, _, token = server.stdout.readline().strip().partition("?token=")
    base, _, key = page.partition("/sessions/")
    assert base.startswith("http://127.0.0.1:")
    assert key == recorded.key
    url = f"{base}{recorded.url}/findings"
    assert answer(url)[0] == 401
    assert answer(url, Authorization=f"Bearer {'x' * len(token)}")[0] == 401
    status, body = answer(url, Authorization=f"Bearer {token}")
    assert status == 200
    assert json.loads(body)["total"] > 0
    assert token not in Path(f"/proc/{server.pid}/cmdline").read_text()
    server.send_signal(signal.SIGINT)
    _, problems = server.communicate(timeout=PATIENCE_S)
    assert (server.returncode, problems) == (0, "")


def test_what_few_ask_for_is_not_loaded_at_the_start() -> None:
    """The reader of tables and the exposition for Prometheus take longer than all the rest of the server."""
    program = (
        "import sys, stepscope.web.server; print([n for n in ('pyarrow', 'prometheus_client') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert done.stdout == "[]\n"


def test_the_address_is_said_before_the_server_is_loaded(recorded: Recorded) -> None:
    """Who opens it at once waits; Ctrl-C ends what is still being loaded."""
    program = "import sys; sys.modules['stepscope.web.application'] = None\nfrom stepscope.cli.main import main\nmain()"
    server = subprocess.run(
        [sys.executable, "-c", program, "view", str(recorded.path), "--port", "0"],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert server.stdout.startswith("http://127.0.0.1:")
    assert server.returncode != 0


def test_many_ask_at_once_from_the_start(recorded: Recorded) -> None:
    """A browser opens with several requests at the same time: all are answered, by a server that lives on."""
    server = view(str(recorded.path.parent), "--port", "0", STEPSCOPE_TOKEN=TOKEN)
    assert server.stdout is not None
    base = server.stdout.readline().strip().rstrip("/")
    paths = ["/api/v1/jobs", "/api/v1/sessions", f"{recorded.url}/findings", recorded.url] * 4
    with ThreadPoolExecutor(len(paths)) as clients:
        told = clients.map(lambda path: answer(base + path, Authorization=f"Bearer {TOKEN}")[0], paths)
        assert set(told) == {200}
    server.send_signal(signal.SIGINT)
    _, problems = server.communicate(timeout=PATIENCE_S)
    assert (server.returncode, problems) == (0, "")


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    """Nothing there; a token that is none: one line, the documented exit code."""
    for args, env, code, said in (
        ([str(tmp_path / "nothing")], {}, 65, "does not exist"),
        ([str(tmp_path)], {"STEPSCOPE_TOKEN": "short"}, 64, "token"),
        ([str(tmp_path), "--host", "203.0.113.1", "--port", "1"], {}, 64, "203.0.113.1:1"),
    ):
        server = view(*args, **env)
        _, problems = server.communicate(timeout=PATIENCE_S)
        assert server.returncode == code, problems
        assert said in problems
        assert problems.count("\n") == 1


@pytest.mark.parametrize("missing", ["starlette", "uvicorn", "prometheus_client"])
def test_without_the_extra_it_says_what_to_install(missing: str) -> None:
    """The core does not need it."""
    program = f"import sys; sys.modules['{missing}'] = None\nfrom stepscope.cli.main import main\nmain()"
    done = subprocess.run(
        [sys.executable, "-c", program, "view"],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 64
    assert f"{missing} is not installed" in done.stderr
    assert "pip install starlette uvicorn prometheus-client" in done.stderr
