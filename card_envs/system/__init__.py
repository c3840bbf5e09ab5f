"""Files, terminals, processes: what a program needs and no game does."""
