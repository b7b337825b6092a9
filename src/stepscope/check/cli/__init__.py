"""The commands ``check`` and ``lsp``."""
