"""The rules: one file each, listed by hand in ``check.registry``."""
