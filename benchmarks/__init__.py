"""Speed beside that of others, measured in turns. Each module is a command, and `python -m benchmarks` runs those
that compare. `load`, `attacks` and `soak` measure a server, and memory over time."""
