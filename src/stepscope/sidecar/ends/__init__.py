"""What the end of a process says: that it does not come, or that the program came to harm."""
