"""Native stacks: what perf, ELF files and DWARF say, and how CPython lays out its code."""
