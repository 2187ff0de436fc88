/* Tests of the reader of svmlight text alone. fuzz_svmlight.c compares it with the C library on texts of any kind. */
#include "decimal.h"
#include "svmlight.h"
#include "testing.h"

enum { ROOM = 64 };

typedef struct {
    tk_svmlight c;
    double labels[ROOM], values[ROOM];
    int64_t label_ptr[ROOM], indptr[ROOM];
    int32_t indices[ROOM];
    tk_hard_number hard[ROOM];
    tk_text problem;
    int64_t at;
} text_rows;

static void read_text(text_rows *rows, const char *text, int32_t wide, int32_t first_index, int several)
{
    memset(rows, 0, sizeof *rows);
    rows->c = (tk_svmlight){.wide = wide, .first_index = first_index, .n_columns = 9, .max_index = -1, .enough = 1};
    rows->c.labels = rows->labels;
    rows->c.label_ptr = several ? rows->label_ptr : NULL;
    rows->c.indptr = rows->indptr;
    rows->c.indices = rows->indices;
    rows->c.values = rows->values;
    rows->c.hard = rows->hard;
    rows->problem = tk_read_svmlight(&rows->c, text, (int64_t)strlen(text), &rows->at);
}

static void test_good_text(void)
{
    const char *text = "# c\n\n+1 qid:3 1:0.5\t9:-2e-3 # 1:x\r\n -1\n";
    text_rows rows;
    snprintf(where, sizeof where, "good text");
    read_text(&rows, text, 1, -1, 0);
    check(rows.problem == TK_TEXT_GOOD && rows.at == (int64_t)strlen(text), "all of it is read");
    check(rows.c.n_rows == 2 && rows.c.n_entries == 2 && rows.c.n_hard == 0, "there are two rows of two entries");
    check(rows.labels[0] == 1 && rows.labels[1] == -1, "labels");
    check(rows.indices[0] == 1 && rows.indices[1] == 9 && rows.c.max_index == 9, "indices");
    check(rows.values[0] == 0.5 && rows.values[1] == -2e-3, "values");
    check(rows.indptr[1] == 2 && rows.indptr[2] == 2, "indptr");
    check(rows.c.first_index == -1, "nothing tells where indices begin");

    read_text(&rows, "2,1 0:4\n3:0.1\n", 0, -1, 1);
    check(rows.problem == TK_TEXT_GOOD && rows.c.n_rows == 2 && rows.c.n_labels == 2, "two labels, then none");
    check(rows.label_ptr[1] == 2 && rows.label_ptr[2] == 2, "label_ptr");
    check(((float *)rows.c.values)[0] == 4 && ((float *)rows.c.values)[1] == 0.1f, "values as floats");
    check(rows.c.first_index == 0, "indices begin at 0");
}

static void test_enough(void)
{
    const char *text = "1 1:1\n2 1:1 2:1\n3\n";
    text_rows rows;
    snprintf(where, sizeof where, "enough");
    read_text(&rows, text, 1, 1, 0);
    rows.c.n_rows = rows.c.n_entries = rows.c.n_labels = rows.at = 0;
    rows.c.entry_cost = 1;
    rows.c.enough = 2;
    check(tk_read_svmlight(&rows.c, text, 18, &rows.at) == TK_TEXT_GOOD && rows.at == 16, "stops behind the row");
    check(tk_read_svmlight(&rows.c, text, 18, &rows.at) == TK_TEXT_GOOD && rows.at == 16, "enough is enough");
    rows.c.enough = 9;
    check(tk_read_svmlight(&rows.c, text, 18, &rows.at) == TK_TEXT_GOOD && rows.at == 18, "goes on");
    check(rows.c.n_rows == 3 && rows.labels[2] == 3 && rows.indptr[3] == 3, "adds to what is there");
}

static void test_bad_text(void)
{
    static const struct {
        const char *text;
        tk_text problem;
        int64_t at;
        int32_t first_index;
    } cases[] = {
        {"1\nx\n", TK_TEXT_LABEL, 2, 1},          {"1:1\n", TK_TEXT_LABEL, 0, 1},
        {"1 qid:\n", TK_TEXT_QID, 2, 1},          {"1 1\n", TK_TEXT_PAIR, 2, 1},
        {"1 1:1 a:1\n", TK_TEXT_PAIR, 6, 1},      {"1 -1:1\n", TK_TEXT_NEGATIVE, 2, 1},
        {"1 0:1\n", TK_TEXT_ZERO, 2, 1},          {"1 9:1\n2 0:1\n", TK_TEXT_ZERO, 8, -1},
        {"1 10:1\n", TK_TEXT_BEYOND, 2, 1},       {"1 9:1\n", TK_TEXT_BEYOND, 2, 0},
        {"1 0:1 9:1\n", TK_TEXT_BEYOND, 6, -1},   {"1 18446744073709551617:1\n", TK_TEXT_BEYOND, 2, 1},
        {"1 2:1 2:1\n", TK_TEXT_FALLS, 6, 1},     {"1 2:\n", TK_TEXT_VALUE, 4, 1},
        {"1 2:0x1\n", TK_TEXT_VALUE, 4, 1},       {"1 2:1 3:1.e\n", TK_TEXT_VALUE, 8, 1},
        {"1 2:-NaN\n", TK_TEXT_NOT_FINITE, 4, 1}, {"infinity 2:1\n", TK_TEXT_NOT_FINITE, 0, 1},
        {"1 2:4e38\n", TK_TEXT_TOO_LARGE, 4, 1},
    };
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        text_rows rows;
        snprintf(where, sizeof where, "%.40s", cases[i].text);
        read_text(&rows, cases[i].text, 0, cases[i].first_index, 0);
        check(rows.problem == cases[i].problem, "the kind of problem");
        check(rows.at == cases[i].at, "where the problem is");
    }
}

static void test_hard_numbers(void)
{
    text_rows rows;
    snprintf(where, sizeof where, "hard numbers");
    read_text(&rows, "1e300 1:2 2:9007199254740993.00000000000000001\n", 1, 1, 0);
    check(rows.problem == TK_TEXT_GOOD && rows.c.n_hard == 2, "they are left to the caller");
    check(rows.hard[0].begin == 0 && rows.hard[0].place == -1, "a label");
    check(rows.hard[1].begin == 12 && rows.hard[1].place == 1, "a value");
}

/* The first 64 bits of 10^q, by as many digits in base 2^32 as it takes: of 10^q, or of 2^608 / 10^-q. */
static uint64_t first_bits(int q)
{
    enum { N = 20 };
    uint32_t digits[N] = {0}; /* the lowest first */
    digits[q < 0 ? N - 1 : 0] = 1;
    for (int i = 0; i < abs(q); i++) {
        uint64_t carry = 0;
        for (int k = 0; k < N; k++) {
            const int at = q < 0 ? N - 1 - k : k;
            const uint64_t x = q < 0 ? (carry << 32) + digits[at] : 10 * (uint64_t)digits[at] + carry;
            digits[at] = (uint32_t)(q < 0 ? x / 10 : x);
            carry = q < 0 ? x % 10 : x >> 32;
        }
    }
    uint64_t bits = 0;
    for (int i = 32 * N - 1; i >= 0 && bits >> 63 == 0; i--)
        bits = 2 * bits + (digits[i / 32] >> i % 32 & 1);
    while (bits >> 63 == 0)
        bits *= 2;
    return bits;
}

static void test_powers(void)
{
    for (int q = MIN_POWER; q <= MAX_POWER; q++) {
        snprintf(where, sizeof where, "10^%d", q);
        check(powers[q - MIN_POWER] == first_bits(q), "its first bits");
    }
}

static void test_count(void)
{
    char text[1000];
    snprintf(where, sizeof where, "count");
    for (int i = 0; i < 1000; i++)
        text[i] = i % 3 ? 'a' : '\n';
    check(tk_count_bytes(text, 0, 'a') == 0 && tk_count_bytes(text, 1000, '\n') == 334, "bytes are counted");
    memset(text, 'a', 1000);
    check(tk_count_bytes(text, 999, 'a') == 999, "all of them");
}

int main(void)
{
    test_good_text();
    test_enough();
    test_bad_text();
    test_hard_numbers();
    test_powers();
    test_count();
    printf("%lld passed, %lld failed\n", (long long)n_passed, (long long)n_failed);
    return n_failed > 0;
}
