"""What the machine, its devices and other processes take from the steps."""
