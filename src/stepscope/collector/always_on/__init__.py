"""Always-on measurement: where it is enabled, and how much is kept."""
