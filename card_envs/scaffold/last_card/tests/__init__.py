from card_envs.scaffold.last_card.tests import facts, referee
from card_envs.testing.referee import Facts, RefereeModule

FACTS: Facts[referee.Referee] = facts
REFEREE: RefereeModule[referee.Referee] = referee
