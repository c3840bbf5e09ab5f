/* Play a game of Back Alley among four players of the library, and print it.

   cc play.c -I FOLDER -L FOLDER -lcard_envs_back_alley -Wl,-rpath,FOLDER -o play && ./play FOLDER 1 small

   FOLDER is what `python -m card_envs build back_alley --api` wrote; then a seed, and who plays. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "card_envs_back_alley.h"

#define SEATS CARD_ENVS_BACK_ALLEY_SEATS
#define MEMORY CARD_ENVS_BACK_ALLEY_CHAMPION_MEMORY /* the largest */

typedef int32_t advise(const void *, void *, const uint64_t *, int16_t *, double *);
static const struct {
    const char *name;
    advise *ask;
} PLAYERS[] = {
    {"greedy", card_envs_back_alley_advise_greedy},
    {"small", card_envs_back_alley_advise_small},
    {"strong", card_envs_back_alley_advise_strong},
    {"champion", card_envs_back_alley_advise_champion},
};

static int32_t checked(int32_t code, const char *what) {
    if (code < 0) {
        fprintf(stderr, "%s: %s\n", what, card_envs_back_alley_error(code));
        exit(1);
    }
    return code;
}

int main(int number, char **given) {
    if (number != 4) {
        fprintf(stderr, "expected: %s FOLDER SEED PLAYER\n", given[0]);
        return 2;
    }
    advise *ask = 0;
    for (size_t p = 0; p < sizeof PLAYERS / sizeof *PLAYERS; p++)
        if (!strcmp(PLAYERS[p].name, given[3])) ask = PLAYERS[p].ask;
    char path[4096];
    snprintf(path, sizeof path, "%s/back_alley.%s.player", given[1], given[3]);
    FILE *file = fopen(path, "rb");
    if (!ask || !file) {
        fprintf(stderr, "%s: no such player\n", given[3]);
        return 1;
    }
    fseek(file, 0, SEEK_END);
    size_t length = (size_t)ftell(file);
    rewind(file);
    void *content = malloc(length), *memory = aligned_alloc(64, MEMORY);
    if (fread(content, 1, length, file) != length) return 1;
    fclose(file);
    checked(card_envs_back_alley_load_player(given[3], content, length, memory, MEMORY), path);
    free(content);

    _Alignas(8) uint8_t state[CARD_ENVS_BACK_ALLEY_STATE_SIZE];
    double values[3 * CARD_ENVS_BACK_ALLEY_ACTIONS];
    float paid[SEATS], total[SEATS] = {0};
    int16_t actions[32];
    uint64_t seed = strtoull(given[2], 0, 10), keys[2] = {seed, seed + 1};
    card_envs_back_alley_init(state);
    checked(card_envs_back_alley_set_option(state, "deals=single"), "option");
    checked(card_envs_back_alley_begin(state, &seed), "deal");
    while (!card_envs_back_alley_over(state)) {
        int32_t seat = checked(card_envs_back_alley_seat(state), "seat");
        checked(ask(state, memory, keys, actions, values), given[3]);
        printf("seat %d: %s\n", seat, card_envs_back_alley_move_text(state, actions[0]));
        checked(card_envs_back_alley_play(state, actions[0]), "play");
        card_envs_back_alley_rewards(state, paid);
        for (int s = 0; s < SEATS; s++) total[s] += paid[s];
        keys[0] += 2, keys[1] += 2;
    }
    for (int s = 0; s < SEATS; s++) printf("seat %d: %+g points\n", s, total[s]);
    free(memory);
    return 0;
}
