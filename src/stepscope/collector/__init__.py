"""Collection of a run's data outside the job: launch, recording, sampling, captures."""
