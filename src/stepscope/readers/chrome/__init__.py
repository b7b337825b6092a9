"""Chrome's trace events, and the tools that write them."""
