"""Reading sources: files, names and scopes, without knowing what they mean."""
