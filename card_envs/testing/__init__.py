"""What a game's own tests are made of, in this package and in others: a referee, facts, and where they lie."""
