"""Trained networks: their inputs, inference without torch, and the folders that store them."""
