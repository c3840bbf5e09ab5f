"""Trained networks: what they read, how they run without torch, and the folders that hold them."""
