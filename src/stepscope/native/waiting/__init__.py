"""What the threads of a job wait for, seen from outside: nothing in the job is stopped or changed."""
