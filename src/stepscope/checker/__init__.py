"""Static checks of Python sources: what costs time in TensorFlow and Keras programs, seen without running them."""
