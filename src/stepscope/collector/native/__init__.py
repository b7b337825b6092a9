"""Native stacks of a process, by perf and BPF."""
