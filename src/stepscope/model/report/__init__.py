"""What reports hold: public API."""
