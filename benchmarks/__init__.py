"""Speed beside that of others, measured in turns: see README.md."""
