"""Files, terminals, processes: what a program needs and no game does."""

QUIET = "CARD_ENVS_QUIET"  # environment variable: no lines on stderr about work that takes long
