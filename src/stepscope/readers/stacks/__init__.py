"""Files of sampled stacks, both ways: bytes to ``tables.stacks.StackProfile`` and back.

- ``detect``: the kind of a file, by content; reads any of them.
- ``perf_script``: the text of ``perf script``.
- ``folded``: folded stacks of flamegraph.pl and many others, both ways.
- ``pprof``: gzipped protocol buffers of pprof, both ways.
- ``speedscope``: JSON of speedscope, both ways.
- ``labels``: a frame as one string.
"""
