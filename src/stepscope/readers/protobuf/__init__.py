"""Protocol buffers without compiled schemas."""
