"""Sessions as the server shows them."""
