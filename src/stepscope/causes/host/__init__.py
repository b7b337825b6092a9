"""What the host does in the steps that it need not do."""
