"""The kernel's sampling interfaces: perf and BPF."""
