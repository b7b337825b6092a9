"""Timelines of sessions: built, kept, and asked."""
