"""Members of one job: clocks, calls paired by step, the time that is a member's own, and for whom others wait."""
