"""Rules about versions of libraries, processes and devices."""
