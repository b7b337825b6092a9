# TensorFlow as it comes: oneDNN's pool keeps the memory of tensors.
exec "$PYTHON" fields.py
