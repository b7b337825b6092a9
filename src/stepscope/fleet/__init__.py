"""Many sessions: what each leaves behind for the fleet, and the questions that are asked of all of them."""
