"""The report of a session, part by part."""
