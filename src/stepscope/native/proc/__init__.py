"""Files of /proc and netlink's answers, from bytes."""
