"""The steps of an op trace, and where their time went."""
