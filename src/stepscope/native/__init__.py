"""Looks at processes from outside: ELF and DWARF, perf and BPF, frames of CPython, memory, control groups."""
