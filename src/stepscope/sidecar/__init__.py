"""The brain of the process that runs with a job: live analysis, triggers, captures, hangs, the end."""
