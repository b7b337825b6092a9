"""The machine and the processes on it: counters, memory, page faults."""
