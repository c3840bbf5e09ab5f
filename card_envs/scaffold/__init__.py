"""Making a new game: the template that is copied, and what checks the copy."""
