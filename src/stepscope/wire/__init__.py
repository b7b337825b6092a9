"""The encoding of data from the agent to the collector: a ring of fixed records and a log of JSON lines.

Standard library only, Python 3.9 and later: this package is loaded into the job together with the agent.

- ``kinds``: what a record can be.
- ``ring``: the memory-mapped ring file; the layout, the writer's and the reader's view of it.
- ``log``: the append-only JSON-lines file for everything of variable length.
- ``env``: the environment variables that arm a process.
"""
