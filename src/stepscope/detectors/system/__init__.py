"""Detectors of the cost of memory, network, disks and other processes."""
