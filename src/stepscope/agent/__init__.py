"""What runs inside a job, on its own Python: standard library and ``wire`` only, and it never harms the job."""
