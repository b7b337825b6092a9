"""Kind of job."""
