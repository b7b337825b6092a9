"""How well kernels use a device, and what compiling them takes."""
