"""What the agent writes: rings and logs."""
