"""Pure functions from a session to what detectors and reports reason about.

- ``intervals``: sets of time intervals, painted by priority.
- ``steps``: which calls make a step, where steps begin, which are steady.
- ``anatomy``: how the wall time of the steady steps splits into components.
- ``hot``: stack samples, joined to the anatomy by time.
- ``pipeline``: the input: the wait by tf.data's live model (``model_reads``), its ``stages``, the user's Python in it
  (``pipeline_python``), and what limits it (``input_cause``).
- ``retraces``, ``first_traces``, ``contention``: tracing by cause, what first traces cost; who else used the CPU.
- ``view``: all of it behind one read-only object, computed once and on demand.
"""
