"""Support for the tests of games, in this package and in others: referee, facts, mutants, malformed input."""
