"""Settings for all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A machine under load is no reason to fail: no test is timed.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
