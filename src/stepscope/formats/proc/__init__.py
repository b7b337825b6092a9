"""Files below /proc that describe the memory of a process."""
