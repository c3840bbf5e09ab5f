"""A seat for whoever plays: at the terminal, in words, over a network."""
