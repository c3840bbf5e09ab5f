"""Compiled machinery shared by all games: decorators, random streams, card sets, loops, batches."""
