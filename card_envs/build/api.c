/* What the C interface of a game has besides compiled rules and players: options, texts of moves, files of players.

   TABLES, a generated file, defines NAME(x), the game's prefix, and the tables below. */

#include <stdint.h>
#include <string.h>

typedef struct {
    const char *text;
    uint32_t first, last; /* of PATCHES */
} choice;
typedef struct {
    uint16_t offset;
    uint8_t value;
} patch;
typedef struct {
    const char *name, *layout;
    uint64_t size;
} player;
typedef struct {
    int32_t code;
    const char *text;
} problem;

#include TABLES

#define API __attribute__((visibility("default")))
#define COUNT(table) ((int32_t)(sizeof(table) / sizeof(*table)))

enum { NO_OPTION = -5, NO_TEXT = -6, NO_PLAYER = -7, WRONG_FILE = -8, TOO_SMALL = -9 };

/* Files of players: MAGIC, the layout, the CRC-32 of all that follows it, how many segments there are, and these, each
   with offset, count and kind. All numbers are little-endian. */
#define LAYOUT 16
static const char MAGIC[8] = {'C', 'A', 'R', 'D', 'E', 'N', 'V', '2'};
enum { BYTES, HALVES };
enum { CHECKED = sizeof MAGIC + LAYOUT + 4 }; /* from here on */

int32_t NAME(legal)(const void *state, int8_t *mask);
int32_t NAME(text)(const void *state, int32_t action);

API uint64_t NAME(state_size)(void) { return sizeof INITIAL; }

API uint64_t NAME(player_memory)(const char *name) {
    for (int32_t p = 0; p < COUNT(PLAYERS); p++)
        if (!strcmp(PLAYERS[p].name, name)) return PLAYERS[p].size;
    return 0;
}

API void NAME(init)(void *state) { memcpy(state, INITIAL, sizeof INITIAL); }

API int32_t NAME(set_option)(void *state, const char *option) {
    for (int32_t c = 0; c < COUNT(CHOICES); c++) {
        if (strcmp(CHOICES[c].text, option)) continue;
        for (uint32_t p = CHOICES[c].first; p < CHOICES[c].last; p++)
            ((uint8_t *)state)[PATCHES[p].offset] = PATCHES[p].value;
        return 0;
    }
    return NO_OPTION;
}

API const char *NAME(move_text)(const void *state, int32_t action) {
    int32_t index = NAME(text)(state, action);
    return index < 0 ? 0 : TEXTS[index];
}

API int32_t NAME(parse_move)(const void *state, const char *text) {
    for (int32_t action = 0; action < ACTIONS; action++)
        if (!strcmp(NAME(move_text)(state, action), text)) return action;
    return NO_TEXT;
}

API const char *NAME(error)(int32_t code) {
    for (int32_t e = 0; e < COUNT(PROBLEMS); e++)
        if (PROBLEMS[e].code == code) return PROBLEMS[e].text;
    return code < 0 ? "unknown error" : "no error";
}

static uint64_t number(const uint8_t *bytes, int size) {
    uint64_t found = 0;
    for (int k = size - 1; k >= 0; k--) found = found << 8 | bytes[k];
    return found;
}

static uint32_t crc32_of(const uint8_t *at, const uint8_t *end) {
    static const uint32_t NIBBLES[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
        0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
    };
    uint32_t sum = 0xffffffff;
    for (; at < end; at++) {
        sum = NIBBLES[(sum ^ *at) & 15] ^ sum >> 4;
        sum = NIBBLES[(sum ^ *at >> 4) & 15] ^ sum >> 4;
    }
    return ~sum;
}

/* A float16 as a float32: exact. */
static uint32_t widened(uint32_t half) {
    uint32_t sign = (half & 0x8000u) << 16, exponent = half >> 10 & 31, fraction = half & 0x3ff;
    if (exponent == 31) return sign | 0x7f800000u | fraction << 13;
    if (exponent == 0) {
        if (fraction == 0) return sign;
        exponent = 1;
        while (!(fraction & 0x400)) fraction <<= 1, exponent--;
        fraction &= 0x3ff;
    }
    return sign | (exponent + 112) << 23 | fraction << 13;
}

API int32_t NAME(load_player)(const char *name, const void *file, uint64_t length, void *memory, uint64_t size) {
    const uint8_t *at = file, *end = at + length;
    const player *wanted = 0;
    for (int32_t p = 0; p < COUNT(PLAYERS); p++)
        if (!strcmp(PLAYERS[p].name, name)) wanted = &PLAYERS[p];
    if (!wanted) return NO_PLAYER;
    if (length < CHECKED + 4 || memcmp(at, MAGIC, sizeof MAGIC)) return WRONG_FILE;
    if (memcmp(at + sizeof MAGIC, wanted->layout, LAYOUT)) return WRONG_FILE;
    if (number(at + CHECKED - 4, 4) != crc32_of(at + CHECKED, end)) return WRONG_FILE;
    if (size < wanted->size) return TOO_SMALL;
    memset(memory, 0, wanted->size);
    uint64_t segments = number(at + CHECKED, 4);
    at += CHECKED + 4;
    while (segments--) {
        if (end - at < 16) return WRONG_FILE;
        uint64_t offset = number(at, 8), count = number(at + 8, 4), kind = number(at + 12, 4);
        uint64_t stored = kind == HALVES ? 2 * count : count, needed = kind == HALVES ? 4 * count : count;
        at += 16;
        if ((uint64_t)(end - at) < stored || offset > wanted->size || wanted->size - offset < needed) return WRONG_FILE;
        if (kind == HALVES)
            for (uint64_t k = 0; k < count; k++) {
                uint32_t bits = widened((uint32_t)number(at + 2 * k, 2));
                memcpy((uint8_t *)memory + offset + 4 * k, &bits, 4);
            }
        else
            memcpy((uint8_t *)memory + offset, at, count);
        at += stored;
    }
    return at == end ? 0 : WRONG_FILE;
}
