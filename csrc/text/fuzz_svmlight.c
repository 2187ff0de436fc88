/* The reader of svmlight text, given anything: it stays inside its arrays, what it has read is sound and has strtod's
 * numbers, and reading in parts gives the same. Stops by abort() or by a sanitizer.
 *
 * With libFuzzer, where clang has it:
 *
 *     clang -std=c11 -g -O1 -fsanitize=fuzzer,address,undefined -DTK_LIBFUZZER fuzz_svmlight.c svmlight.c -lm -o fuzz
 *     ./fuzz -max_total_time=60
 *
 * Without, spoilt texts of its own, for so many seconds, or the contents of files:
 *
 *     fuzz_svmlight 60
 *     fuzz_svmlight FILE... */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "svmlight.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "not so: %s\n", what);
        abort();
    }
}

/* An allocation of its own, without spare room: the address sanitizer sees every byte too many. */
static void *room(int64_t n, size_t size)
{
    void *memory = malloc((size_t)n * size + (n == 0));
    expect(memory != NULL, "there is memory");
    return memory;
}

static void put(const tk_svmlight *rows, int64_t place, double x)
{
    if (place < 0)
        rows->labels[-1 - place] = x;
    else if (rows->wide)
        ((double *)rows->values)[place] = x;
    else
        ((float *)rows->values)[place] = (float)x;
}

typedef struct {
    int32_t wide;
    int32_t first_index, n_columns;
    int several;
} options;

/* Reads all of the text, `stride` rows at a time. */
static tk_svmlight read_all(const options *o, const char *text, int64_t n, int64_t stride, tk_text *problem,
                            int64_t *at)
{
    const int64_t n_lines = tk_count_bytes(text, n, '\n'), n_pairs = tk_count_bytes(text, n, ':');
    const int64_t n_labels = n_lines + (o->several ? tk_count_bytes(text, n, ',') : 0);
    tk_svmlight rows = {.wide = o->wide, .first_index = o->first_index, .n_columns = o->n_columns, .max_index = -1};
    rows.row_cost = 1;
    rows.labels = room(n_labels, sizeof *rows.labels);
    rows.label_ptr = o->several ? room(n_lines + 1, sizeof *rows.label_ptr) : NULL;
    rows.indptr = room(n_lines + 1, sizeof *rows.indptr);
    rows.indices = room(n_pairs, sizeof *rows.indices);
    rows.values = room(n_pairs, o->wide ? 8 : 4);
    rows.hard = room(n_labels + n_pairs, sizeof *rows.hard);
    rows.indptr[0] = 0;
    if (o->several)
        rows.label_ptr[0] = 0;
    *at = 0;
    do {
        const int64_t before = *at;
        rows.enough = rows.n_rows + stride;
        *problem = tk_read_svmlight(&rows, text, n, at);
        expect(*at >= before && *at <= n, "the place is in the text");
        expect(rows.n_rows <= rows.enough, "no more rows than were asked for");
        expect(*problem || *at == n || rows.n_rows == rows.enough, "as many rows as were asked for");
    } while (!*problem && *at < n);
    for (int64_t i = 0; i < rows.n_hard; i++)
        put(&rows, rows.hard[i].place, strtod(text + rows.hard[i].begin, NULL));
    return rows;
}

static void release(tk_svmlight *rows)
{
    free(rows->labels);
    free(rows->label_ptr);
    free(rows->indptr);
    free(rows->indices);
    free(rows->values);
    free(rows->hard);
}

static int same_bits(const void *a, const void *b, int64_t n, size_t size)
{
    return n == 0 || memcmp(a, b, (size_t)n * size) == 0;
}

static int same_value(const tk_svmlight *rows, int64_t k, double x)
{
    const float narrow = rows->wide ? 0 : (float)x;
    return rows->wide ? same_bits((double *)rows->values + k, &x, 1, sizeof x)
                      : same_bits((float *)rows->values + k, &narrow, 1, sizeof narrow);
}

static const char *token_end(const char *p)
{
    return p + strcspn(p, " \t\v\f\r\n#");
}

static const char *skip_blanks(const char *p)
{
    return p + strspn(p, " \t\v\f\r");
}

/* Checks the labels that stand at p against those from `first` on; returns how many they are. */
static int64_t check_labels(const tk_svmlight *rows, const char *p, int64_t first)
{
    int64_t n = 0;
    for (char *next;; p = next + 1) {
        const double x = strtod(p, &next);
        expect(same_bits(&rows->labels[first + n++], &x, 1, sizeof x), "the label is strtod's");
        if (*next != ',')
            return n;
    }
}

static void check_pair(const tk_svmlight *rows, const char *p, int64_t k, int is_first)
{
    const int32_t index = rows->indices[k];
    char *colon;
    expect(strtoll(p, &colon, 10) == index && *colon == ':', "the index is strtoll's");
    expect(is_first || index > rows->indices[k - 1], "indices rise");
    expect(index >= (rows->first_index == 1) && index <= rows->n_columns - !rows->first_index,
           "there is such a column");
    expect(same_value(rows, k, strtod(colon + 1, NULL)), "the value is strtod's");
}

/* Goes through good text again, with the C library. */
static void check_rows(const tk_svmlight *rows, const char *text, const char *end)
{
    int64_t i = 0, label = 0, k = 0;
    for (const char *p = text; p < end; p++) {
        p = skip_blanks(p);
        if (*p != '\n' && *p != '#') {
            if (!rows->label_ptr || !memchr(p, ':', (size_t)(token_end(p) - p))) {
                label += check_labels(rows, p, label);
                p = skip_blanks(token_end(p));
            }
            if (*p == 'q')
                p = skip_blanks(token_end(p));
            for (; *p != '\n' && *p != '#'; p = skip_blanks(token_end(p)), k++)
                check_pair(rows, p, k, k == rows->indptr[i]);
            i++;
            expect(rows->indptr[i] == k, "the row ends where it should");
            expect(!rows->label_ptr || rows->label_ptr[i] == label, "and so do its labels");
        }
        while (*p != '\n')
            p++;
    }
    expect(i == rows->n_rows && k == rows->n_entries && label == rows->n_labels, "nothing is left");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int32_t columns[] = {INT32_MAX - 1, 31, 30, 9};
    const uint8_t choice = size ? data[0] : 0;
    const options o = {!(choice & 1), (choice >> 1) % 3 - 1, columns[choice >> 4 & 3], choice >> 3 & 1};
    const int64_t n = size ? (int64_t)size : 1;
    char *text = room(n, 1);
    if (size)
        memcpy(text, data + 1, size - 1);
    text[n - 1] = '\n';

    tk_text problem, problem_again;
    int64_t at, at_again;
    tk_svmlight rows = read_all(&o, text, n, INT32_MAX, &problem, &at);
    tk_svmlight again = read_all(&o, text, n, 1 + choice % 3, &problem_again, &at_again);
    expect(problem == problem_again && at == at_again, "reading in parts ends at the same place");
    expect(rows.n_rows == again.n_rows, "reading in parts gives as many rows");
    const int64_t n_entries = rows.indptr[rows.n_rows];
    expect(same_bits(rows.indptr, again.indptr, rows.n_rows + 1, 8), "reading in parts gives the same rows");
    expect(same_bits(rows.indices, again.indices, n_entries, 4), "reading in parts gives the same indices");
    expect(same_bits(rows.values, again.values, n_entries, o.wide ? 8 : 4), "and the same values");
    if (!problem) {
        int finite = 1; /* hard numbers are the caller's to refuse */
        for (int64_t k = 0; k < n_entries; k++)
            finite &= isfinite(o.wide ? ((double *)rows.values)[k] : ((float *)rows.values)[k]) != 0;
        expect(finite || rows.n_hard > 0, "all values are finite");
        check_rows(&rows, text, text + n);
    }
    release(&rows);
    release(&again);
    free(text);
    return 0;
}

#ifndef TK_LIBFUZZER

static uint64_t state = 1;

static size_t below(size_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(state >> 33) % n;
}

enum { MOST = 400 };

static size_t mutate(uint8_t *data)
{
    static const char *const seeds[] = {
        "+1 1:0.5 2:-3 5:1e-3\n-1 qid:7 2:.5 7:4. # 3:4\n\n 2.5\t3:1 \t4:12345678901234567890.5\r\n",
        "1,2 1:1 3:.5\n2 1:2\n 4:1e5 6:7\n-0 0:-0 2:0 9:1.7976931348623157e308\n7#\n",
        "1e-400 12:2.2250738585072011e-308 30:0.1000000000000000055511151231257827",
    };
    static const char *const spices[] = {" 3:1",
                                         "99999999999999999999",
                                         "00000000000000000000",
                                         "e308",
                                         "e-310",
                                         "nan",
                                         "inf",
                                         " -1:1",
                                         "1,2 ",
                                         "\n",
                                         "#",
                                         " ",
                                         " qid:3",
                                         "4294967297:",
                                         "9007199254740993",
                                         ".5",
                                         "\n0:1",
                                         ":"};
    const char *seed = seeds[below(sizeof seeds / sizeof *seeds)];
    size_t n = 1 + strlen(seed);
    data[0] = (uint8_t)below(256);
    memcpy(data + 1, seed, n - 1);
    for (size_t times = below(6); times > 0 && n > 1; times--) {
        const size_t at = 1 + below(n - 1), most = n - at, length = 1 + below(most < 9 ? most : 9);
        char digits[32] = "";
        for (size_t i = 0, n_digits = 1 + below(24); i < n_digits; i++)
            digits[i] = (char)('0' + below(10));
        const char *more = below(2) ? digits : spices[below(sizeof spices / sizeof *spices)];
        switch (below(4)) {
        case 0:
            data[at] ^= (uint8_t)(1 << below(8));
            break;
        case 1:
            memmove(data + at, data + at + length, most - length);
            n -= length;
            break;
        case 2:
            data[at] = (uint8_t)"0123456789.:e+-, \n#\r"[below(20)];
            break;
        default:
            if (n + strlen(more) > MOST)
                break;
            memmove(data + at + strlen(more), data + at, most);
            memcpy(data + at, more, strlen(more));
            n += strlen(more);
        }
    }
    return n;
}

static void run_file(const char *name)
{
    FILE *file = fopen(name, "rb");
    expect(file != NULL, name);
    static uint8_t data[1 << 20];
    LLVMFuzzerTestOneInput(data, fread(data, 1, sizeof data, file));
    fclose(file);
}

int main(int n_arguments, char **arguments)
{
    const int seconds = n_arguments == 2 ? atoi(arguments[1]) : 0;
    if (seconds <= 0) {
        for (int i = 1; i < n_arguments; i++)
            run_file(arguments[i]);
        return 0;
    }
    static uint8_t data[MOST];
    const time_t end = time(NULL) + seconds;
    long long n = 0;
    for (; time(NULL) < end || n == 0; n++)
        LLVMFuzzerTestOneInput(data, mutate(data));
    printf("%lld texts\n", n);
    return 0;
}

#endif
