"""The report's answer to what the input could reach: its numbers, and the edits as a diff."""
