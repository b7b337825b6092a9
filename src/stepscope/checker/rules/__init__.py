"""The rules: one file each, listed by hand in ``checker.registry``."""
