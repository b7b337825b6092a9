"""ELF, DWARF, BTF, CPython's code objects and perf's records, from bytes."""
