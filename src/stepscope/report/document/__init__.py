"""The sections of the report, one in each module, and the list of them."""
