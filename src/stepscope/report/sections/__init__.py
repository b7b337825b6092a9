"""One module for each part of the report: from a view of the session to a struct."""
