"""One function for each command and request; composes all below."""
