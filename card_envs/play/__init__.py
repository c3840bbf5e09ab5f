"""Games as they are played: an episode, the people and policies in its seats, and what is told of it."""
