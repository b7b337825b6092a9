"""Parts of the report about the machine and its network."""
