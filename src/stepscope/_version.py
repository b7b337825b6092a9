"""The version of stepscope, in a file of its own so that nothing imports the package root."""

__version__ = "0.1.0"
