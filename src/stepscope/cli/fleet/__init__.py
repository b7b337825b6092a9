"""The commands of ``stepscope fleet``."""
