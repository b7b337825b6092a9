"""The static checker: reads sources, knows no session and no framework."""
