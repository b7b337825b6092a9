"""Reading sources: files, names and scopes, without knowledge of their meaning."""
