"""Do trials send nothing? 200 trials of programs that send, beside servers of this host that count what reaches them.

Each program of ``programs/sends_things.py`` runs as a trial of ``whatif`` does, without ``--allow-network``, as root
and as a normal user; a fake object store, tracker and database (``_counting_servers.py``) must see nothing. The check
can fail: each program runs once with ``--allow-network`` and once without stepscope, and is seen where it should be.
What has been run is kept in ``--results`` for each state of ``src``. ``--trackers FOLDER``: site-packages with W&B,
MLflow, Comet, ClearML, Neptune, SwanLab; those that are not there are left out. To be run by root.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import _left_behind
from _counting_servers import Servers
from isolation import UID, as_user, python_of, settle
from stepscope.tables import layout
from whatif import ROOT, tree

PAGE = ROOT / "docs" / "benchmarks" / "no-requests.md"
RESULTS = ROOT / "build" / "no-requests.jsonl"
PROGRAM = ROOT / "bench" / "programs" / "sends_things.py"
STARTER = ROOT / "bench" / "_isolated_trial.py"
NETWORK = (
    *("urllib_get", "s3_put", "gcs_upload", "mlflow_rest", "wandb_rest", "proxied", "postgres", "redis", "six"),
    *("datagram", "datagram_six", "lookup", "event_loop", "threads", "curl", "wget", "bare_child", "forked"),
    *("late_daemon", "at_exit", "mail", "remote_call", "cloud_files", "data_service"),
)
"""Kinds that ``--allow-network`` lets through."""
UNIX = ("unix_file", "unix_link", "unix_datagram", "unix_abstract", "unix_device", "unix_mounted", "unix_read_only")
MOUNTS = """
touch mounted.sock; mkdir -p read-only
mount --bind "$1" mounted.sock
mount --bind "${1%/*}" read-only && mount -o remount,bind,ro read-only
shift; exec "$@"
"""
"""A container's: the socket of a service, and a folder with one that is read-only."""
TRACKERS = {
    "tracker_wandb": "wandb",
    "tracker_mlflow": "mlflow",
    "tracker_comet": "comet_ml",
    "tracker_clearml": "clearml",
    "tracker_neptune": "neptune",
    "tracker_swanlab": "swanlab",
}
SLOW = frozenset(("cloud_files", "data_service"))
"""Kinds that import TensorFlow: few trials of them."""
MODES = ("quiet", "network", "plain")
"""Without consent; with ``--allow-network``; without stepscope."""
TIMEOUT_S = 60.0
LATE_S = 3.5
"""What was started meanwhile may send for so long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One run."""

    number: int
    kind: str
    uid: int
    mode: str
    seen: int
    """Connections, requests and messages that the servers saw."""
    said: str = ""
    """Last line of the program."""


def plan(kinds: list[str], number: int) -> list[tuple[int, str, int, str]]:
    """(number, kind, user, mode): ``number`` trials without consent, then the other modes once for each kind."""
    common = [kind for kind in kinds if kind not in SLOW and kind not in TRACKERS]
    trials = [(kind, uid) for kind in kinds if kind not in common for uid in (0, UID)]
    at = 0
    while len(trials) < number:
        trials.append((common[at % len(common)], (0, UID)[at // len(common) % 2]))
        at += 1
    found = [(kind, uid, "quiet") for kind, uid in trials]
    found += [(kind, 0, mode) for mode in MODES[1:] for kind in kinds]
    return [(at, *one) for at, one in enumerate(found)]


def command(place: Path, kind: str, uid: int, mode: str, servers: Servers) -> list[str]:
    """The command line of a run."""
    python = python_of(uid)
    job = [python, str(PROGRAM), kind, json.dumps(servers.at)]
    ours = [] if mode == "plain" else [python, str(STARTER), f"{place}/sessions/s{layout.SUFFIX}", mode]
    mounted = ["unshare", "-m", "sh", "-c", MOUNTS, "sh", str(servers.at["unix"])]
    return [*(mounted if kind in {"unix_mounted", "unix_read_only"} else []), *as_user(uid), *ours, *job]


def run(number: int, kind: str, uid: int, mode: str, servers: Servers, trackers: str) -> Row:
    """One run."""
    place = Path(tempfile.mkdtemp(prefix="no-requests-"))
    place.chmod(0o755)
    for name in ("work", "sessions"):
        (place / name).mkdir()
        os.chown(place / name, uid, uid)
    paths = [str(ROOT / "src"), *([trackers] if kind in TRACKERS else [])]
    paths += [path for path in sys.path if path.endswith("site-packages")]
    environment = {"HOME": f"{place}/work", "PATH": "/usr/local/bin:/usr/bin:/bin", "TF_CPP_MIN_LOG_LEVEL": "2"}
    environment["TRIAL"] = place.name
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    environment["MLFLOW_TRACKING_URI"] = f"http://{servers.at['host']}:{servers.at['http']}"
    servers.take()
    with (place / "out").open("wb") as out:
        process = subprocess.Popen(
            command(place, kind, uid, mode, servers),
            cwd=place / "work",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
    time.sleep(LATE_S if kind == "late_daemon" else 0.1)
    with _left_behind.held() as none:
        settle(environment["TRIAL"], uid or None, none)
    lines = [line for line in (place / "out").read_text(errors="replace").splitlines() if line]
    shutil.rmtree(place)
    return Row(number=number, kind=kind, uid=uid, mode=mode, seen=servers.take(), said=said(lines))


def said(lines: list[str]) -> str:
    """What the program said about itself."""
    ours = [line for line in lines if line.startswith(("sending", "sent", "failed"))]
    return (ours or lines or [""])[-1][:200]


def report(rows: list[Row], left_out: list[str]) -> str:
    """The page's tables."""
    quiet = [row for row in rows if row.mode == "quiet"]
    seen = [row for row in quiet if row.seen]
    lines = [f"{len(quiet) - len(seen)} of {len(quiet)} trials without consent were not seen by any server.", ""]
    lines += ["| program | trials | seen | with `--allow-network` | without stepscope | what it said in a trial |"]
    lines += ["|---|---:|---:|---:|---:|---|"]
    for kind in dict.fromkeys(row.kind for row in rows):
        own = [row for row in quiet if row.kind == kind]
        others = {row.mode: row.seen for row in rows if row.kind == kind and row.mode != "quiet"}
        cells = (kind, len(own), sum(bool(row.seen) for row in own), others.get("network"), others.get("plain"))
        text = own[0].said.replace("|", "/").partition(": Command")[0].partition(": Error")[0] if own else ""
        lines.append(f"| {' | '.join(map(str, cells))} | {text} |")
    missing = [f"Left out, not installed: {', '.join(left_out)}.", ""] if left_out else []
    told = [f"- {row.number}, {row.kind}, {'root' if not row.uid else 'normal user'}: {row.seen} seen" for row in seen]
    return "\n".join([*lines, "", *missing, *told, ""])


def main() -> None:
    """Run what is missing, and print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--only", nargs="*", help="kinds of programs")
    parser.add_argument("--trackers", default="", help="site-packages with trackers")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    wanted = parser.parse_args()
    if os.getuid():
        sys.exit("to be run by root, who can be a normal user as well")
    there = [kind for kind, name in TRACKERS.items() if wanted.trackers and (Path(wanted.trackers) / name).is_dir()]
    state = tree()
    lines = wanted.results.read_text().splitlines() if wanted.results.exists() else []
    known = [Row(**entry["row"]) for entry in map(json.loads, lines) if entry["tree"] == state]
    done = {(row.number, row.kind, row.uid, row.mode): row for row in known}
    wanted.results.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="no-requests-"))
    folder.chmod(0o755)
    servers = Servers(folder)
    rows = []
    try:
        for key in plan([*NETWORK, *UNIX, *there], wanted.trials):
            if wanted.only and key[1] not in wanted.only:
                continue
            if key not in done:
                done[key] = run(*key, servers, wanted.trackers)
                with wanted.results.open("a") as stream:
                    stream.write(json.dumps({"tree": state, "row": asdict(done[key])}) + "\n")
                print(done[key], file=sys.stderr, flush=True)
            rows.append(done[key])
    finally:
        Path(servers.device).unlink()
        shutil.rmtree(folder)
    text = report(rows, [name for kind, name in TRACKERS.items() if kind not in there])
    print(text)
    if wanted.write:
        before = PAGE.read_text("utf-8").partition("<!-- figures -->")[0]
        PAGE.write_text(f"{before}<!-- figures -->\n\n{text}", "utf-8")


if __name__ == "__main__":
    main()
