"""Speed beside that of others, measured in turns. Each module is a command, and `python -m benchmarks` runs all."""
