/* A trick game for four in plain C: what `BatchEnv.step` is measured against.

   54 cards (four suits of 13 and two jokers, which are trumps), 13 cards a hand, the next card turned up for trumps, one
   bid each of 0 to 13, then 13 tricks: follow suit if you can. A side scores its bid and a point for each trick above
   it, or loses its bid. An ended deal is followed by the next. Each step writes 577 bytes of observation, of about what
   Back Alley shows, 68 of mask, the seat, the rewards and the end: as `BatchEnv` does for Back Alley.

   Cards are bytes by card, so that every loop over them is one over 54 or 64 bytes, which the compiler vectorises. */

#include <stdint.h>
#include <string.h>

enum { CARDS = 54, SEATS = 4, BIDS = 14, ACTIONS = CARDS + BIDS, HAND = 13, PAD = 64, OBS = 577, NOBODY = 4 };

typedef struct {
    uint64_t rng;
    int8_t owner[PAD];    /* who holds a card, or NOBODY */
    int8_t player[PAD];   /* who played it, or NOBODY */
    int8_t trick_of[PAD]; /* in which trick, from 1, or 0 */
    int8_t on_table[PAD];
    int8_t bids[SEATS]; /* or -1 */
    int8_t lacks[SEATS][SEATS]; /* seats known to have none of a suit */
    int8_t tricks[2];
    int8_t seat, dealer, leader, best_seat, best, led, trumps, turned, num_bids, in_trick, num_tricks;
} Table;

typedef int8_t Strengths[SEATS + 1][PAD];

/* By trumps and suit led (or SEATS: none): what takes the trick, and what follows. Suit 4: jokers, which are trumps. */
static Strengths strength[SEATS];
static Strengths follows[SEATS];

static int suit_of(int card, int trumps) { return card < 52 ? card / 13 : trumps; }

void prepare(void) {
    for (int trumps = 0; trumps < SEATS; trumps++)
        for (int led = 0; led <= SEATS; led++)
            for (int card = 0; card < CARDS; card++) {
                int suit = suit_of(card, trumps), rank = card < 52 ? card % 13 : card - 39;
                strength[trumps][led][card] = suit == trumps ? 32 + rank : led == SEATS || suit == led ? 1 + rank : 0;
                follows[trumps][led][card] = led == SEATS || suit == led;
            }
}

long table_size(void) { return sizeof(Table); }

static uint64_t next_random(uint64_t *rng) {
    uint64_t z = *rng += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static int below(uint64_t *rng, int bound) { return (int)(((next_random(rng) >> 32) * (uint64_t)bound) >> 32); }

static void deal(Table *t) {
    uint64_t rng = t->rng;
    int dealer = (t->dealer + 1) & 3;
    int8_t pack[CARDS];
    memset(t, 0, sizeof *t);
    memset(t->owner, NOBODY, PAD);
    memset(t->player, NOBODY, PAD);
    for (int card = 0; card < CARDS; card++) pack[card] = card;
    for (int i = 0; i <= SEATS * HAND; i++) {
        int j = i + below(&rng, CARDS - i);
        int8_t card = pack[j];
        pack[j] = pack[i];
        pack[i] = card;
        if (i < SEATS * HAND) t->owner[card] = i & 3;
    }
    t->rng = rng;
    t->turned = pack[SEATS * HAND];
    t->trumps = suit_of(t->turned, t->turned & 3);
    t->dealer = dealer;
    t->seat = t->leader = (dealer + 1) & 3;
    t->led = SEATS;
    t->best_seat = NOBODY;
    memset(t->bids, -1, SEATS);
}

static void play(Table *t, int action, float *rewards, uint8_t *done) {
    memset(rewards, 0, SEATS * sizeof *rewards);
    *done = 0;
    if (action >= CARDS) {
        t->bids[t->seat] = action - CARDS;
        t->num_bids++;
        t->seat = (t->seat + 1) & 3;
        return;
    }
    int suit = suit_of(action, t->trumps), seat = t->seat;
    if (t->in_trick == 0) {
        t->led = suit;
        memset(t->on_table, 0, PAD);
    } else if (suit != t->led) {
        t->lacks[seat][t->led] = 1;
    }
    int power = strength[t->trumps][t->led][action];
    if (t->in_trick == 0 || power > t->best) {
        t->best = power;
        t->best_seat = seat;
    }
    t->owner[action] = NOBODY;
    t->player[action] = seat;
    t->trick_of[action] = t->num_tricks + 1;
    t->on_table[action] = 1;
    if (++t->in_trick < SEATS) {
        t->seat = (seat + 1) & 3;
        return;
    }
    t->tricks[t->best_seat & 1]++;
    t->seat = t->leader = t->best_seat;
    t->in_trick = 0;
    t->led = SEATS;
    t->best = 0;
    t->best_seat = NOBODY;
    memset(t->on_table, 0, PAD);
    if (++t->num_tricks < HAND) return;
    int points[2];
    for (int side = 0; side < 2; side++) {
        int bid = t->bids[side] + t->bids[side + 2], over = t->tricks[side] - bid;
        points[side] = over >= 0 ? 5 * bid + over : -5 * bid;
    }
    for (int s = 0; s < SEATS; s++) rewards[s] = (float)(points[s & 1] - points[~s & 1]);
    *done = 1;
    deal(t);
}

static void legal(const Table *t, int8_t *mask) {
    int bidding = t->num_bids < SEATS;
    memset(mask + CARDS, bidding, BIDS);
    if (bidding) {
        memset(mask, 0, CARDS);
        return;
    }
    const int8_t *fits = follows[t->trumps][t->led];
    int8_t seat = t->seat, able = 0;
    for (int card = 0; card < PAD; card++) able |= (t->owner[card] == seat) & fits[card];
    for (int card = 0; card < CARDS; card++) mask[card] = (t->owner[card] == seat) & (fits[card] | !able);
}

static void observe(const Table *t, int8_t *obs) {
    int8_t seat = t->seat, best = t->best;
    const int8_t *power = strength[t->trumps][t->led];
    for (int card = 0; card < CARDS; card++) obs[card] = t->owner[card] == seat;
    obs += CARDS;
    for (int other = 0; other < SEATS; other++, obs += CARDS) {
        int8_t who = (seat + other) & 3;
        for (int card = 0; card < CARDS; card++) obs[card] = t->player[card] == who;
    }
    memcpy(obs, t->trick_of, CARDS), obs += CARDS;
    memcpy(obs, t->on_table, CARDS), obs += CARDS;
    for (int card = 0; card < CARDS; card++) obs[card] = (t->owner[card] == seat) & (power[card] > best);
    obs += CARDS;
    memset(obs, 0, CARDS), obs[t->turned] = 1, obs += CARDS;
    memset(obs, 0, SEATS * BIDS);
    for (int other = 0; other < SEATS; other++, obs += BIDS) {
        int bid = t->bids[(seat + other) & 3];
        if (bid >= 0) obs[bid] = 1;
    }
    memset(obs, 0, 20);
    obs[(t->leader - seat) & 3] = 1;
    obs[4 + ((t->dealer - seat) & 3)] = 1;
    if (t->best_seat != NOBODY) obs[8 + ((t->best_seat - seat) & 3)] = 1;
    obs[12 + t->in_trick] = 1;
    obs[16 + t->trumps] = 1;
    obs += 20;
    for (int other = 1; other < SEATS; other++, obs += SEATS) memcpy(obs, t->lacks[(seat + other) & 3], SEATS);
    *obs++ = t->tricks[seat & 1];
    *obs++ = t->tricks[~seat & 1];
    *obs++ = t->num_tricks;
}

void reset(Table *tables, long n, uint64_t seed, int8_t *obs, int8_t *mask, int8_t *seat) {
    for (long i = 0; i < n; i++) {
        memset(&tables[i], 0, sizeof tables[i]);
        tables[i].rng = (seed << 32) + (uint64_t)i * 0xD1342543DE82EF95u;
        deal(&tables[i]);
        legal(&tables[i], mask + i * ACTIONS);
        observe(&tables[i], obs + i * OBS);
        seat[i] = tables[i].seat;
    }
}

/* Returns the first table with an illegal action, or -1: then all have moved. */
long step(Table *tables, long n, const int64_t *actions, int8_t *obs, int8_t *mask, int8_t *seat, float *rewards,
          uint8_t *done) {
    for (long i = 0; i < n; i++)
        if (actions[i] < 0 || actions[i] >= ACTIONS || !mask[i * ACTIONS + actions[i]]) return i;
    for (long i = 0; i < n; i++) {
        play(&tables[i], (int)actions[i], rewards + i * SEATS, done + i);
        legal(&tables[i], mask + i * ACTIONS);
        observe(&tables[i], obs + i * OBS);
        seat[i] = tables[i].seat;
    }
    return -1;
}

/* A random legal action for each table, from `streams`. */
void choose(long n, const int8_t *mask, uint64_t *streams, int64_t *actions) {
    for (long i = 0; i < n; i++) {
        const int8_t *row = mask + i * ACTIONS;
        int number = 0, action = -1;
        for (int k = 0; k < ACTIONS; k++) number += row[k];
        for (int index = below(&streams[i], number); index >= 0; index--)
            do action++;
            while (!row[action]);
        actions[i] = action;
    }
}
