"""Search: one policy made of candidates, prior, rollout, leaf and budget; see `_policy.py`."""

from card_envs.opponents.search._policy import SearchPolicy, why_not

__all__ = ["SearchPolicy", "why_not"]
