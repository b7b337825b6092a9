"""The report: its sections, and how they are written as text, Markdown, JSON and a page."""
