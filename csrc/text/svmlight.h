/* svmlight text. Nothing here allocates or prints: Python owns all memory. */
#ifndef TK_SVMLIGHT_H
#define TK_SVMLIGHT_H

#include <stdint.h>

/* No finite float is near to this double or to a larger one. */
#define TK_FLOAT_END 0x1.ffffffp127

/* What is wrong with svmlight text. */
typedef enum {
    TK_TEXT_GOOD = 0,
    TK_TEXT_LABEL,      /* a label that is no number */
    TK_TEXT_QID,        /* qid: without an integer */
    TK_TEXT_PAIR,       /* not index:value */
    TK_TEXT_NEGATIVE,   /* an index below 0 */
    TK_TEXT_ZERO,       /* an index of 0 where they begin at 1 */
    TK_TEXT_BEYOND,     /* an index for which there is no column */
    TK_TEXT_FALLS,      /* an index that is not above the one before */
    TK_TEXT_VALUE,      /* a value that is no number */
    TK_TEXT_NOT_FINITE, /* a label or value that is infinite or NaN */
    TK_TEXT_TOO_LARGE   /* a value too large for its type */
} tk_text;

/* A number that is not converted, since 64 bits of precision do not tell which double is the nearest. Its syntax is
 * good. */
typedef struct {
    int64_t begin; /* in the text */
    int64_t place; /* it belongs into values[place], or, below 0, into labels[-1 - place] */
} tk_hard_number;

/* Rows of svmlight text. A line has a label, maybe qid:N, which is passed over, and pairs index:value; # begins a
 * comment. Rows are added behind those that are there. There has to be room for as many rows more as a text has
 * newlines, entries as it has colons, labels as it has newlines (and commas, where rows have any number of labels), and
 * hard numbers as entries and labels. */
typedef struct {
    int32_t wide;        /* 1: values are doubles; 0: floats */
    int32_t first_index; /* 0 or 1; or -1 for 1 until an index of 0 is met, which makes it 0 */
    int32_t n_columns;   /* at most INT32_MAX - 1 */
    int32_t max_index;   /* the highest index so far; -1 at first */
    int64_t row_cost;    /* reading stops when n_rows * row_cost + n_entries * entry_cost >= enough */
    int64_t entry_cost;
    int64_t enough;
    double *labels;       /* [n_labels] */
    int64_t *label_ptr;   /* [n_rows + 1] where the labels of a row begin: any number, as in 1,3,4; NULL: one a row */
    int64_t *indptr;      /* [n_rows + 1] */
    int32_t *indices;     /* [n_entries] as they stand in the text */
    void *values;         /* [n_entries] */
    tk_hard_number *hard; /* [n_hard] */
    int64_t n_rows, n_labels, n_entries, n_hard;
} tk_svmlight;

/* Reads lines from text[*at] on, up to text[end], which is behind a newline, or until it is enough: *at is then where
 * the next line begins. When something is wrong *at tells where, and the last row is not whole. */
tk_text tk_read_svmlight(tk_svmlight *rows, const char *text, int64_t end, int64_t *at);

/* How many of the n bytes of a text are this one. */
int64_t tk_count_bytes(const char *text, int64_t n, char which);

#endif
