"""Content of reports: public API."""
