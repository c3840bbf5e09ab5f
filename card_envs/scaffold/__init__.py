"""Making a new game: `high_card`, a minimal implementation of the contract to copy, and checks of the copy."""
