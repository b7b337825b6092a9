"""What the value trial says: work that the values of the tensors show to be needless."""
