"""Native stacks: perf's files, ELF files, DWARF, and CPython's code objects."""
