"""Which calls make the steps, when they ran, and how their time splits."""
