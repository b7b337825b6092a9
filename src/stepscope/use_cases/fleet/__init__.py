"""The use case ``fleet``: parts of sessions are made, sent and asked."""
