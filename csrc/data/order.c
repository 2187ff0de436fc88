/* Which rows are visited, and in which order: at random, or with those together that have much of a table in common. */
#include "scratch.h"

/* Fisher and Yates. A draw of 32 bits stands for one of i + 1 places: of fewer than 2^31 rows, none is preferred by
 * more than one draw. */
void tk_shuffle(int32_t *rows, int64_t n, const uint32_t *draws)
{
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t j = (int64_t)(((uint64_t)draws[i] * (uint64_t)(i + 1)) >> 32);
        const int32_t row = rows[i];
        rows[i] = rows[j];
        rows[j] = row;
    }
}

int64_t tk_active_rows(const int32_t *rows, int64_t n, const uint8_t *active, int32_t *kept)
{
    int64_t m = 0;
    for (int64_t i = 0; i < n; i++) { /* no branch: none could be foreseen */
        const int32_t row = rows ? rows[i] : (int32_t)i;
        kept[m] = row;
        m += active[row] != 0;
    }
    return m;
}

/* The key that rows are sorted by has two digits, and holds as many of a row's last columns as it has room for, the
 * last one first; of very many columns, those beside one another count as one. */
enum { DIGIT = 12, DIGITS = 1 << DIGIT };

typedef struct {
    int bits; /* of a column's number in the key, */
    int less; /* which is without so many of its last bits */
    int columns;
} layout;

static layout lay_out(int32_t n_columns)
{
    layout key = {1, 0, 0};
    while (n_columns >> key.bits) /* numbers from 1 on, and 0 for none */
        key.bits++;
    if (key.bits > DIGIT) {
        key.less = key.bits - DIGIT;
        key.bits = DIGIT;
    }
    key.columns = 2 * DIGIT / key.bits;
    return key;
}

static uint32_t make_key(const tk_rows *rows, layout to, int64_t stored)
{
    const int32_t *at = rows->indices + rows->indptr[stored], *end = rows->indices + rows->indptr[stored + 1];
    uint32_t key = 0;
    for (int c = 0; c < to.columns; c++)
        key = key << to.bits | (end > at ? (uint32_t)(*--end + 1) >> to.less : 0);
    return key;
}

/* The same where columns have new numbers: two runs that rise, one of them before the other. */
static uint32_t make_key_of_places(const tk_rows *rows, layout to, int64_t stored)
{
    const int32_t *begin = rows->indices + rows->indptr[stored], *end = rows->indices + rows->indptr[stored + 1];
    uint32_t key = 0;
    int c = 0;
    for (int front = 0; front < 2; front++)
        for (const int32_t *at = end; at > begin && c < to.columns;) {
            const int32_t place = rows->place[*--at];
            if ((place < rows->n_front) == front) {
                key = key << to.bits | (uint32_t)(place + 1) >> to.less;
                c++;
            }
        }
    return key << to.bits * (to.columns - c);
}

static void sort_by(int digit, const uint64_t *from, uint64_t *to, int64_t n)
{
    int32_t begin[DIGITS] = {0}, sum = 0;
    const int shift = 32 + digit * DIGIT;
    for (int64_t i = 0; i < n; i++)
        begin[from[i] >> shift & (DIGITS - 1)]++;
    for (int d = 0; d < DIGITS; d++) {
        const int32_t count = begin[d];
        begin[d] = sum;
        sum += count;
    }
    for (int64_t i = 0; i < n; i++)
        to[begin[from[i] >> shift & (DIGITS - 1)]++] = from[i];
}

void tk_sort_rows(const tk_rows *rows, int64_t first, int64_t last, int32_t *order, uint64_t *scratch)
{
    const int64_t n = last - first;
    const layout to = lay_out(rows->n_columns);
    uint64_t *keyed = scratch, *other = scratch + n; /* key and row */
    for (int64_t i = 0; i < n; i++) {
        const int64_t stored = tk_stored(rows, first + i);
        const uint32_t key = rows->place ? make_key_of_places(rows, to, stored) : make_key(rows, to, stored);
        keyed[i] = (uint64_t)key << 32 | (uint64_t)stored;
    }
    sort_by(0, keyed, other, n);
    sort_by(1, other, keyed, n);
    for (int64_t i = 0; i < n; i++)
        order[i] = (int32_t)(uint32_t)keyed[i];
}
