"""Makes the run directory, starts the job and its sidecar, passes signals on."""
