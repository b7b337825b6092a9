"""Starts a job isolated and says how it went: start_isolated.py OPTIONS ARGV..., OPTIONS as JSON.

Prints a line with the pid when the job has started, and a last line with how it ended.
"""

import json
import os
import signal
import sys
from pathlib import Path

from stepscope.sandbox import isolation

options = json.loads(sys.argv[1])
keep = tuple(Path(path) for path in options.pop("keep", ()))
mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGTSTP})
mounts = Path("/proc/self/mountinfo").read_text()
try:
    job = isolation.start(sys.argv[2:], dict(os.environ), mask, isolation.Isolation(**options), keep)
except OSError as error:
    print(json.dumps({"errno": error.errno}))
    sys.exit()
print(json.dumps({"pid": job.pid, "guard": job.guard, "namespaces": sorted(job.namespaces)}), flush=True)
_, status = os.waitpid(job.pid, 0)
stuck = job.end()
children = [Path(f"/proc/self/task/{task}/children").read_text() for task in os.listdir("/proc/self/task")]
print(
    json.dumps(
        {
            "code": os.waitstatus_to_exitcode(status),
            "stuck": stuck,
            "notes": job.notes,
            "children": "".join(children),
            "mounts_same": mounts == Path("/proc/self/mountinfo").read_text(),
        }
    )
)
