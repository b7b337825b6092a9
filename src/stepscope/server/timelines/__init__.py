"""Timelines of sessions: building, caching, queries."""
