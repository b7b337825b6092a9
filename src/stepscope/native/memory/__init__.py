"""The memory of a process, seen from outside."""
