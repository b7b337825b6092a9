"""Starting a job with its sidecar, and the directories of both."""
