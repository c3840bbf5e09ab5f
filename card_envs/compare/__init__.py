"""Comparing policies on the same deals with sides swapped."""
