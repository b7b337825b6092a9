"""Finds out why a deep-learning job is slow, and proves that the fix works.

Importing this package has no effect: no I/O, no environment, no framework.
"""

from stepscope._version import __version__

__all__ = ["__version__"]
