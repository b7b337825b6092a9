"""The report's parts about memory."""
