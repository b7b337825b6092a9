"""What tasks of a job send each other in a traced step, and the ops that need it."""
