"""Rules about tf.function: what is traced, when, and how often."""
