"""Playing and watching games at the terminal."""
