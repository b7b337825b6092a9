"""What the agent knows of its process, and the wall between its code and the job's."""
