"""Playing and watching at the terminal."""
