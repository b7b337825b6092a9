"""Protocol buffers without their schemas compiled."""
