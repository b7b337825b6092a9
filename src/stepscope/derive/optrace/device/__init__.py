"""What devices did in an op trace, and the memory of allocators."""
