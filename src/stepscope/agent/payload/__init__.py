"""The files that travel into the job, and where they go.

``PAYLOAD`` lists (source relative to the package ``stepscope``, destination relative to the arm directory). A source
that ends in "/" is a folder, copied whole, ``*.py`` only. The arm directory is the first entry of the job's PYTHONPATH
and holds exactly this::

    sitecustomize.py            found by ``site`` when the job's Python starts
    stepscope/__init__.py       the stub
    stepscope/agent/            the agent
    stepscope/wire/             the encoding of its output

``stepscope/wire/__init__.py`` and ``stepscope/agent/__init__.py`` are among the copied files. The directory should be
writable for the user of the job, so that the first process leaves compiled files for the next: with them arming costs
less than 1 ms.

Cannot be armed: ``python -S`` (no site), ``-I`` and ``-E`` (PYTHONPATH is ignored), a process started with its own
environment that lacks PYTHONPATH or STEPSCOPE_RUN, Python before 3.9.
"""

from __future__ import annotations

PAYLOAD = (
    ("agent/payload/sitecustomize.py", "sitecustomize.py"),
    ("agent/payload/stub.py", "stepscope/__init__.py"),
    ("agent/", "stepscope/agent/"),
    ("wire/", "stepscope/wire/"),
)
