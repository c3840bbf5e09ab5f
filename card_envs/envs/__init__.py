"""Environments for all games: PettingZoo (`aec`), Gymnasium (`single_agent`, `vector`) and OpenSpiel (`spiel`)."""
