"""Stored sessions: open, complete, pack, merge, send and fetch."""
