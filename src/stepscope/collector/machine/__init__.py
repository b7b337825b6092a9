"""What ``stepscope doctor`` looks at: rights, processors, memory, libraries. Everything is read, nothing is written."""
