"""The checks of `python -m card_envs check`, one module for each kind of fault, cheapest first."""
