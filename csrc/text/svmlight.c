/* svmlight text -> rows, in one pass over the bytes.
 *
 * The text ends with a newline, and whatever goes on from a byte to the next stops at a newline at the latest: so
 * nothing here looks where the text ends but the loop over lines. */
#include <string.h>

#include "decimal.h"
#include "svmlight.h"

/* A space, tab, vertical tab, form feed or carriage return. */
static inline int is_blank(byte c)
{
    return c == ' ' || c == '\t' || (c >= '\v' && c <= '\r');
}

static inline int ends_token(byte c)
{
    return c <= ' ' ? c == '\n' || is_blank(c) : c == '#';
}

static inline const byte *skip_blanks(const byte *p)
{
    while (is_blank(*p))
        p++;
    return p;
}

static inline const byte *skip_digits(const byte *p)
{
    while (is_digit(*p))
        p++;
    return p;
}

/* Whether what is no number here would be one elsewhere: nan, inf or infinity. */
static int is_special(const byte *p, byte end)
{
    static const char *const names[] = {"nan", "inf", "infinity"};
    p += *p == '-' || *p == '+';
    for (int i = 0; i < 3; i++) {
        int n = 0;
        while (names[i][n] && (p[n] | 32) == names[i][n])
            n++;
        if (!names[i][n] && (ends_token(p[n]) || p[n] == end))
            return 1;
    }
    return 0;
}

/* ---- lines: each of these reads from *at on, and moves it behind what it has read or to what is wrong ---- */

/* Labels separated by commas, none when the token has a colon; or exactly one. */
static tk_text read_labels(tk_svmlight *rows, const byte *text, const byte **at)
{
    const byte comma = rows->label_ptr ? ',' : '\n';
    const byte *p = *at;
    if (rows->label_ptr) {
        while (!ends_token(*p) && *p != ':')
            p++;
        if (*p == ':')
            return TK_TEXT_GOOD;
        p = *at;
    }
    for (;; p++) {
        *at = p;
        const number found = read_number(&p, rows->labels + rows->n_labels);
        if (found == NO_NUMBER || !(ends_token(*p) || *p == comma))
            return is_special(*at, comma) ? TK_TEXT_NOT_FINITE : TK_TEXT_LABEL;
        if (found == HARD)
            rows->hard[rows->n_hard++] = (tk_hard_number){*at - text, -1 - rows->n_labels};
        rows->n_labels++;
        if (*p != ',')
            break;
    }
    *at = p;
    return TK_TEXT_GOOD;
}

static tk_text skip_qid(const byte **at)
{
    const byte *p = *at;
    if (!(p[0] == 'q' && p[1] == 'i' && p[2] == 'd' && p[3] == ':'))
        return TK_TEXT_GOOD;
    const byte *digits = p + 4 + (p[4] == '-' || p[4] == '+');
    p = skip_digits(digits);
    if (p == digits || !ends_token(*p))
        return TK_TEXT_QID;
    *at = p;
    return TK_TEXT_GOOD;
}

/* An index of any number of digits; not the true one when it is above INT32_MAX. */
static int64_t long_index(const byte *p)
{
    int64_t index = 0;
    for (; is_digit(*p); p++)
        if (index <= INT32_MAX)
            index = 10 * index + (*p - '0');
    return index;
}

/* An index of 0 at the beginning of a row, where it is not yet known whether they begin at 0 or at 1. */
static int can_be_zero(const tk_svmlight *rows, int64_t index, int64_t n_before)
{
    return index == 0 && n_before == 0 && rows->first_index < 0 && rows->max_index < rows->n_columns;
}

static inline tk_text read_pairs(tk_svmlight *rows, const byte *text, const byte **at, const int32_t wide)
{
    const int64_t begin = rows->n_entries;
    int64_t n = begin, previous = rows->first_index == 0 ? -1 : 0;
    int64_t highest = rows->n_columns + previous;
    int32_t *const indices = rows->indices;
    const byte *p = skip_blanks(*at);
    for (; is_digit(*p); p = skip_blanks(p)) {
        *at = p;
        int64_t index = 0;
        for (; is_digit(*p); p++)
            index = (int64_t)(10 * (uint64_t)index + (byte)(*p - '0'));
        if (*p != ':')
            return TK_TEXT_PAIR;
        if (p - *at > 18)
            index = long_index(*at);
        if (index > highest)
            return TK_TEXT_BEYOND;
        if (index <= previous) {
            if (!can_be_zero(rows, index, n - begin))
                return n > begin ? TK_TEXT_FALLS : TK_TEXT_ZERO;
            rows->first_index = 0;
            highest--;
        }

        double x;
        *at = ++p;
        if (is_digit(*p) && ends_token(p[1])) { /* what many files have throughout, and quick */
            x = *p++ - '0';
        } else {
            const number found = read_number(&p, &x);
            if (found == NO_NUMBER || !ends_token(*p))
                return is_special(*at, '\n') ? TK_TEXT_NOT_FINITE : TK_TEXT_VALUE;
            if (found == HARD)
                rows->hard[rows->n_hard++] = (tk_hard_number){*at - text, n};
        }
        if (wide) {
            ((double *)rows->values)[n] = x;
        } else {
            if (!(x < TK_FLOAT_END && x > -TK_FLOAT_END))
                return TK_TEXT_TOO_LARGE;
            ((float *)rows->values)[n] = (float)x;
        }
        indices[n++] = (int32_t)index;
        previous = index;
    }
    *at = p;
    rows->n_entries = n;
    if (n > begin && previous > rows->max_index)
        rows->max_index = (int32_t)previous;
    if (*p == '\n' || *p == '#')
        return TK_TEXT_GOOD;
    return *p == '-' && is_digit(p[1]) && *skip_digits(p + 1) == ':' ? TK_TEXT_NEGATIVE : TK_TEXT_PAIR;
}

static tk_text read_row(tk_svmlight *rows, const byte *text, const byte **at)
{
    tk_text problem = read_labels(rows, text, at);
    if (problem)
        return problem;
    *at = skip_blanks(*at);
    problem = skip_qid(at);
    if (problem)
        return problem;
    problem = rows->wide ? read_pairs(rows, text, at, 1) : read_pairs(rows, text, at, 0);
    if (problem)
        return problem;
    rows->n_rows++;
    rows->indptr[rows->n_rows] = rows->n_entries;
    if (rows->label_ptr)
        rows->label_ptr[rows->n_rows] = rows->n_labels;
    return TK_TEXT_GOOD;
}

tk_text tk_read_svmlight(tk_svmlight *rows, const char *text, int64_t end, int64_t *at)
{
    const byte *const begin = (const byte *)text;
    const byte *p = begin + *at;
    tk_text problem = TK_TEXT_GOOD;
    while (p < begin + end && rows->n_rows * rows->row_cost + rows->n_entries * rows->entry_cost < rows->enough) {
        p = skip_blanks(p);
        if (*p != '\n' && *p != '#') {
            problem = read_row(rows, begin, &p);
            if (problem)
                break;
        }
        if (*p == '#')
            p = memchr(p, '\n', (size_t)(begin + end - p));
        p++;
    }
    *at = p - begin;
    return problem;
}

int64_t tk_count_bytes(const char *text, int64_t n, char which)
{
    int64_t count = 0;
    while (n > 0) { /* sums in bytes over stretches in which they cannot overflow: vectors of many */
        const int64_t stretch = n < 255 ? n : 255;
        byte part = 0;
        for (int64_t i = 0; i < stretch; i++)
            part += text[i] == which;
        count += part;
        text += stretch;
        n -= stretch;
    }
    return count;
}
