"""What the sidecar does while a job runs."""
