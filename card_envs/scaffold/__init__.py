"""Making a new game: `high_card`, the smallest one through the whole contract, to copy, and what checks the copy."""
