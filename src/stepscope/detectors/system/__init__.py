"""Detectors of what memory, network, disks and other processes cost."""
