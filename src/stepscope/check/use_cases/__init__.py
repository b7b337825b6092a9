"""Check files, fix them, print what was found."""
