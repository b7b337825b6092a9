"""XSpace files (``*.xplane.pb``) of TensorFlow, JAX and XLA."""
