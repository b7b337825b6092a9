"""Parts of sessions for the fleet: made, and sent."""
