"""What this machine is, and can do: the checks of ``doctor``, calibration, ops run alone."""
