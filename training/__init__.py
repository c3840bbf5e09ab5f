"""Training."""

import card_envs  # noqa: F401 (Ctrl-C while the rest is imported ends a command quietly)
