"""Whose job it is, and of which state of which repository: asked once, when its recording begins."""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import subprocess
import threading
from typing import TYPE_CHECKING

from stepscope.model.session.session import JobOrigin

if TYPE_CHECKING:
    from collections.abc import Mapping

TEAM = "STEPSCOPE_TEAM"
"""Variable that names the team."""
ACCOUNT = "SLURM_JOB_ACCOUNT"
"""Variable in which SLURM says who is charged."""
_GIT_S = 2.0
"""Time that git gets: a repository may lie on a file system that does not answer."""


def job_origin(cwd: str, pid: int = 0, environment: Mapping[str, str] = os.environ) -> JobOrigin:
    """The user of a process, else of this one, and the repository that holds the job's working directory."""
    user, group = _user_and_group(pid)
    top, commit = _repository(cwd)
    return JobOrigin(
        user=user,
        team=environment.get(TEAM, "") or environment.get(ACCOUNT, "") or group,
        project=os.path.basename(top or cwd),
        commit=commit,
    )


def _user_and_group(pid: int) -> tuple[str, str]:
    """Names; the group is "" if it is the one that most systems make for each user."""
    uid, gid = os.getuid(), os.getgid()
    if pid:
        with contextlib.suppress(OSError):  # it has ended
            about = os.stat(f"/proc/{pid}")
            uid, gid = about.st_uid, about.st_gid
    user, group = str(uid), ""
    with contextlib.suppress(KeyError):  # as in many containers
        user = pwd.getpwuid(uid).pw_name
    with contextlib.suppress(KeyError):
        group = grp.getgrgid(gid).gr_name
    return user, "" if group == user else group


def _repository(cwd: str) -> tuple[str, str]:
    """Top folder and commit; "" each: there is none, or git cannot say."""
    try:
        git = subprocess.Popen(
            ["git", "-C", cwd or os.curdir, "rev-parse", "--show-toplevel", "HEAD"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            errors="replace",
        )
    except OSError:
        return "", ""
    try:
        said, _ = git.communicate(timeout=_GIT_S)
    except subprocess.TimeoutExpired:
        git.kill()  # not waited for here: in a call to such a file system it ends when that answers
        threading.Thread(target=git.wait, name="stepscope-git", daemon=True).start()
        if git.stdout is not None:
            git.stdout.close()
        return "", ""
    top, _, commit = said.strip().partition("\n")
    return (top, commit) if git.returncode == 0 else ("", "")
