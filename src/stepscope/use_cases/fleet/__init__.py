"""The use case ``fleet``: questions about the parts of many sessions."""
