"""The timeline of a session: its tracks, and each track at several levels of detail."""
