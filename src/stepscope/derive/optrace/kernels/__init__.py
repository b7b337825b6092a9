"""How well kernels use a device, and the cost of compiling them."""
