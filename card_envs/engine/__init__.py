"""Running rules, the same for all games: tables, batches and their loops, random streams, sets of cards, GPUs."""
