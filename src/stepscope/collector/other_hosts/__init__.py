"""One request traces the tasks of a job on several hosts: what collectors of hosts say to each other about it."""
