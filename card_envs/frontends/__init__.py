"""A seat for anyone who plays: at the terminal, in words, over a network."""
