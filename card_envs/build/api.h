/* ${title}: rules and players, compiled from card_envs. ${name}.json describes states, observations and texts.

   All memory is the caller's: states are records of STATE_SIZE bytes, aligned to 8, which may be copied.
   A state is trusted like a pointer: pass only what these functions wrote, and check what comes from elsewhere, such as
   a file or a network, before (a digest of your own will do).
   Functions allocate nothing, keep nothing and may be called by several threads, each with memory of its own.
   They return 0 or what is said, or a negative number: an error.

${errors} */

#ifndef ${upper}_H
#define ${upper}_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
${sizes}
};

/* The text of an error. */
const char *card_envs_${name}_error(int32_t code);

/* The sizes above, for languages that read no headers: of a state, and of a player's memory; 0 if there is none. */
uint64_t card_envs_${name}_state_size(void);
uint64_t card_envs_${name}_player_memory(const char *player);

/* A state with the default options, before the first deal. */
void card_envs_${name}_init(void *state);

/* Choose an option before `begin`:
${options} */
int32_t card_envs_${name}_set_option(void *state, const char *option);

${rules}

/* A move as text; null if there is no such action. */
const char *card_envs_${name}_move_text(const void *state, int32_t action);

/* The action of a move, legal or not. */
int32_t card_envs_${name}_parse_move(const void *state, const char *text);

/* Make a player's memory, of its ..._MEMORY bytes and aligned to 64, from its file. Threads share no memory. */
int32_t card_envs_${name}_load_player(
    const char *player, const void *file, uint64_t length, void *memory, uint64_t size);

/* Players. The state is copied and its hidden cards are redrawn, so that no player sees what its seat can't.
   `keys`: two random numbers, for the hidden cards and for a search; the same keys give the same answer.
   `actions`: room for 32. The first is to play now; the others are what the seat means to play next, as long as
   nothing hidden shows and nobody else moves. Returns how many there are.
   `values`: 3 rows of ACTIONS: a search's expected margin for each action, the advantage over the baseline, and the
   number of worlds; nan where nothing is known. They are estimates, of which the search chose the best.
   A player that searches judges moves, too: `key` is a random number for the worlds, `cost` gets how much better the
   action is that it returns than the given one, in points, and the standard error of that. */
${players}

#ifdef __cplusplus
}
#endif
#endif
