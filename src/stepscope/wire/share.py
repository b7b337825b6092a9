"""Which jobs are measured where ``enable --share`` measures some: drawn by a hash of the job's id.

All processes of a job decide alike, without a word between them: by the scheduler's id of the job where it has one, on
all hosts; else by the oldest of their ancestors that runs the same Python.
"""

from __future__ import annotations

import os
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

IDS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid")
"""Variables that all processes of a job share, and no two jobs. Source: manuals of Slurm, PBS, LSF, Flux, Open MPI."""
_WHOLE = 1 << 32


def job_id(env: Mapping[str, str], above: Mapping[int, int]) -> str:
    """What only the processes of this job share. ``above``: pid and start of this process and of its ancestors."""
    for name in IDS:
        if env.get(name):
            return "%s=%s" % (name, env[name])
    mine = _executable(os.getpid())
    alike = [pid for pid in above if _executable(pid) == mine]
    first = alike[-1] if alike else os.getpid()
    return "process %d, started at %d" % (first, above.get(first, 0))


def drawn(identity: str, share: float) -> bool:
    """Whether the job with this id is among the share that is measured."""
    return zlib.crc32(identity.encode()) < share * _WHOLE


def _executable(pid: int) -> str:
    try:
        return os.readlink("/proc/%d/exe" % pid)
    except OSError:
        return ""
