"""Work of devices in an op trace, and the memory of allocators."""
