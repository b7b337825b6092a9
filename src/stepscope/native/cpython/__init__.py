"""CPython's own frames in native stacks."""
