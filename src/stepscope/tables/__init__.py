"""What every part speaks of: numbers with units, errors, columns of records, and the words of a finding."""
