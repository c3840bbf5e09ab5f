from card_envs.testing.referee import Facts, RefereeModule
from tests.games.russian_bank import facts, referee

FACTS: Facts[referee.Referee] = facts
REFEREE: RefereeModule[referee.Referee] = referee
