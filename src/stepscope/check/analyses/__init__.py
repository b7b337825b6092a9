"""Questions about code that several rules ask."""
