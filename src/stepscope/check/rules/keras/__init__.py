"""Rules about Keras models and their loops."""
