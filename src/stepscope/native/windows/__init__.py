"""A window of native stacks, of memory or of system calls: opened, read, decoded."""
