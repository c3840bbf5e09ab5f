from card_envs.testing.referee import Facts, RefereeModule
from tests.games.back_alley import facts, referee

FACTS: Facts[referee.Referee] = facts
REFEREE: RefereeModule[referee.Referee] = referee
