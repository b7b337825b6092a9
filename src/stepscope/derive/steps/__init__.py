"""The calls that make the steps, when they ran, and how their time splits."""
