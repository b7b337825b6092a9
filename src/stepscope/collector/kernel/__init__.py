"""The kernel's interfaces that samples come from: perf and BPF."""
