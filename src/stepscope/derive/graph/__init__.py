"""The graphs of a process: their nodes, loops and variables."""
