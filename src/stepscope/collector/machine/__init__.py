"""The checks of ``stepscope doctor``: rights, processors, memory, libraries. Everything is read, nothing is written."""
