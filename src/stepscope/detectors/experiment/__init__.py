"""Detectors of what an experiment (``stepscope whatif``) on this run showed."""
