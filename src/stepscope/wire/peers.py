"""Lines about the peers that processes of a trial want to reach, in the run directory: see ``agent.peers``.

The launcher makes the file; a process that finds it notes its attempts there, a process without it notes none.
"""

from __future__ import annotations

import json
import os

from stepscope.wire.env import PEERS_NAME

TRACKERS = {
    "wandb": "W&B",
    "mlflow": "MLflow",
    "comet_ml": "Comet",
    "neptune": "Neptune",
    "neptune_scale": "Neptune",
    "clearml": "ClearML",
    "swanlab": "SwanLab",
}
"""Modules of trackers that a trial sets offline (``launcher.offline``), and their names."""
TRACKER = "tracker:"
"""Prefix of a line about a tracker that a process imports; the module follows."""
MAX_BYTES = 1 << 20
"""Maximum size of the file, about 20,000 attempts: a job may try again without end."""


def arm(run: str) -> None:
    """Have the processes of a run note their peers.

    Raises:
        OSError: no space, or no rights.
    """
    os.close(os.open(os.path.join(run, PEERS_NAME), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


def write(run: str, peer: str, attempts: int = 1) -> None:
    """Note attempts to reach a peer; -1 takes one back.

    Raises:
        OSError: the run directory is gone or full.
    """
    fd = os.open(os.path.join(run, PEERS_NAME), os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        if os.fstat(fd).st_size < MAX_BYTES:
            os.write(fd, json.dumps([peer, attempts]).encode("ascii") + b"\n")
    finally:
        os.close(fd)


def read(run: str) -> dict[str, int]:
    """Attempts by peer; a damaged line is omitted."""
    try:
        with open(os.path.join(run, PEERS_NAME), "rb") as stream:
            lines = stream.read(2 * MAX_BYTES).splitlines()
    except OSError:
        return {}
    found: dict[str, int] = {}
    for line in lines:
        try:
            peer, attempts = json.loads(line)
            found[str(peer)] = found.get(str(peer), 0) + int(attempts)
        except (ValueError, TypeError):
            continue
    return {peer: attempts for peer, attempts in found.items() if attempts > 0}
