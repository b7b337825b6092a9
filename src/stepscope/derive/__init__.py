"""What is: pure functions from a session to steps, times, stages, ops and stacks. ``causes`` explain why.

- ``numeric``: intervals, trends, pairs.
- ``steps``: which calls make a step, where steps begin, which are steady, how their time splits (``anatomy``).
- ``python``: stack samples joined to the anatomy, the source of the loop, tracing by reason.
- ``input``: the pipeline: the wait by tf.data's live model, its stages, the user's Python in it.
- ``graph``: the nodes of graphs, their loops and variables.
- ``optrace``: ops, steps, devices and kernels of an op trace.
- ``stacks``: native and Python stacks as profiles.
- ``machine``: counters, memory, causes of page faults.
- ``view``: what most analyses start from, and ``get``, which caches the others.
"""
