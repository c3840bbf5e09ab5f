"""What `python -m card_envs check` looks at, one module for each kind of fault, cheapest first."""
