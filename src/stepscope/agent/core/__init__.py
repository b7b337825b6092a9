"""The agent's knowledge of its process, and the wall between its code and the job's."""
