"""Records a running job: drains rings and logs, samples the machine, takes captures, writes the session."""
