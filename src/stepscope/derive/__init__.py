"""Pure functions from a session to what detectors and reports reason about.

- ``intervals``: sets of time intervals, painted by priority.
- ``steps``: which calls make a step, where steps begin, which are steady.
- ``anatomy``: how the wall time of the steady steps splits into components.
- ``hot``: stack samples, joined to the anatomy by time.
- ``pipeline``: tf.data's live models: input wait and the slow stage.
- ``retraces``, ``contention``: tracing by cause; who else used the CPU.
- ``view``: all of it behind one read-only object, computed once and on demand.
"""
