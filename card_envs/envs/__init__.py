"""The games as environments: PettingZoo (`aec`), Gymnasium (`single_agent`), written once for all games."""
