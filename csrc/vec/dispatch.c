/* Which kernels run: chosen once from what the CPU has and the operating system saves.
 *
 * Both count. A CPU may have AVX registers that the operating system does not save when it switches threads; using
 * them then corrupts other programs' numbers, or faults. XGETBV tells which register files are saved. */
#include "kernels.h"
#include "scratch.h"

#if defined(__x86_64__) || defined(_M_X64)
#define TK_X86 1
#if defined(_MSC_VER)
#include <intrin.h>
#else
#include <cpuid.h>
#endif
#endif

enum { HAS_NOTHING = 0, HAS_AVX2 = 1, HAS_AVX512 = 2 };

#ifdef TK_X86
static void cpuid(int leaf, unsigned regs[4])
{
#if defined(_MSC_VER)
    __cpuidex((int *)regs, leaf, 0);
#else
    __cpuid_count(leaf, 0, regs[0], regs[1], regs[2], regs[3]);
#endif
}

static unsigned saved_registers(void)
{
#if defined(_MSC_VER)
    return (unsigned)_xgetbv(0);
#else
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
#endif
}

static int cpu_features(void)
{
    const unsigned avx_state = 0x06, avx512_state = 0xe6; /* XMM and YMM; plus masks and both parts of ZMM */
    unsigned leaf0[4], leaf1[4], leaf7[4];
    cpuid(0, leaf0);
    if (leaf0[0] < 7)
        return HAS_NOTHING;
    cpuid(1, leaf1);
    cpuid(7, leaf7);
    const int fma = leaf1[2] >> 12 & 1, osxsave = leaf1[2] >> 27 & 1;
    const int avx2 = leaf7[1] >> 5 & 1, avx512f = leaf7[1] >> 16 & 1, avx512dq = leaf7[1] >> 17 & 1,
              avx512bw = leaf7[1] >> 30 & 1, avx512vl = leaf7[1] >> 31 & 1;
    if (!osxsave)
        return HAS_NOTHING;
    const unsigned saved = saved_registers();
    int features = HAS_NOTHING;
    if (avx2 && fma && (saved & avx_state) == avx_state) {
        features |= HAS_AVX2;
        if (avx512f && avx512dq && avx512bw && avx512vl && (saved & avx512_state) == avx512_state)
            features |= HAS_AVX512;
    }
    return features;
}
#else
static int cpu_features(void)
{
    return HAS_NOTHING;
}
#endif

static const struct {
    const char *name;
    int needs;
    const tk_kernels *kernels;
} sets[] = {
#ifdef TK_X86
    {"avx512", HAS_AVX512, &tk_kernels_avx512},
    {"avx2", HAS_AVX2, &tk_kernels_avx2},
#endif
    {"baseline", HAS_NOTHING, &tk_kernels_baseline},
};

enum { N_SETS = (int)(sizeof sets / sizeof sets[0]) };

static int in_use = N_SETS - 1;

int tk_n_instruction_sets(void)
{
    return N_SETS;
}

const char *tk_instruction_set_name(int i)
{
    return sets[i].name;
}

int tk_instruction_set_usable(int i)
{
    return (cpu_features() & sets[i].needs) == sets[i].needs;
}

void tk_init(void)
{
    in_use = 0;
    while (!tk_instruction_set_usable(in_use))
        in_use++;
}

int tk_instruction_set(void)
{
    return in_use;
}

void tk_use_instruction_set(int i)
{
    in_use = i;
}

int64_t tk_scratch_bytes(const tk_rows *rows)
{
    const int64_t bytes = rows->real == TK_FLOAT64 ? 8 : 4;
    int64_t most = 0;
    for (; rows; rows = rows->next) {
        /* Expansion walks sparsely even where tables would be walked dense. */
        const tk_sizes sparse = tk_sizes_of(1, rows->max_nonzeros, bytes),
                       dense = tk_sizes_of(MATRIX_LANES, rows->n_columns, bytes);
        const int64_t for_sparse = tk_total(&sparse), for_dense = rows->walk_dense ? tk_total(&dense) : 0;
        most = for_sparse > most ? for_sparse : most;
        most = for_dense > most ? for_dense : most;
    }
    return most;
}

int64_t tk_weigh_scratch_bytes(tk_real real, const tk_map *map)
{
    const tk_sizes sizes = tk_sizes_of(1, map->n_columns, real == TK_FLOAT64 ? 8 : 4);
    return tk_total(&sizes);
}

void tk_dot(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, const tk_table *table, void *out,
            void *scratch)
{
    const int32_t tops[] = {0, map->n_columns + 1};
    const tk_parts whole = {1, tops, 0};
    tk_dot_parts(rows, map, first, last, table, out, scratch, &whole);
}

void tk_dot_parts(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, const tk_table *table, void *out,
                  void *scratch, const tk_parts *parts)
{
    for (const tk_rows *form = rows; form; form = form->next) {
        const tk_rows same = tk_form(form, rows);
        sets[in_use].kernels->real[rows->real].dot(&same, map, first, last, table, out, scratch, parts, form != rows);
    }
}

void tk_add(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, const tk_table *table, const void *t,
            void *scratch)
{
    tk_add_part(rows, map, first, last, table, t, scratch, 0, map->n_columns + 1);
}

void tk_add_part(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, const tk_table *table,
                 const void *t, void *scratch, int32_t top, int32_t end)
{
    for (const tk_rows *form = rows; form; form = form->next) {
        const tk_rows same = tk_form(form, rows);
        sets[in_use].kernels->real[rows->real].add(&same, map, first, last, table, t, scratch, top, end);
    }
}

void tk_factors(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, double *s)
{
    sets[in_use].kernels->real[rows->real].factors(rows, map, first, last, s);
}

void tk_expand(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, const tk_features *out,
               void *scratch)
{
    sets[in_use].kernels->real[rows->real].expand(rows, map, first, last, out, scratch);
}

void tk_weigh(tk_real real, const tk_map *map, int32_t first, int32_t last, const tk_table *table, void *scratch)
{
    sets[in_use].kernels->real[real].weigh(map, first, last, table, scratch);
}

void tk_adapt(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, const tk_adaptive *state,
              const void *t, void *scratch)
{
    tk_adapt_part(rows, map, first, last, state, t, scratch, 0, map->n_columns + 1);
}

void tk_adapt_part(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, const tk_adaptive *state,
                   const void *t, void *scratch, int32_t top, int32_t end)
{
    for (const tk_rows *form = rows; form; form = form->next) {
        const tk_rows same = tk_form(form, rows);
        sets[in_use].kernels->real[rows->real].adapt(&same, map, first, last, state, t, scratch, top, end);
    }
}

void tk_shrink(tk_real real, const tk_adaptive *state, double factor, int64_t first, int64_t last)
{
    sets[in_use].kernels->real[real].shrink(state, factor, first, last);
}

int64_t tk_gram_scratch_bytes(const tk_rows *rows, int64_t n)
{
    const tk_gram_parts parts = tk_gram_parts_of(rows, n);
    /* Where n rows are too many to be laid out by columns, fewer may yet fit. */
    const int64_t columns = n >= LEAST_BY_COLUMNS && !parts.columns ? MOST_BY_COLUMNS : parts.columns;
    return parts.spread + columns + parts.numbers;
}

void tk_gram(const tk_rows *rows, const tk_map *map, int64_t first, int64_t last, double *gram, void *scratch)
{
    for (const tk_rows *form = rows; form; form = form->next) {
        const tk_rows same = tk_form(form, rows);
        sets[in_use].kernels->real[rows->real].gram(&same, map, first, last, gram, scratch, form != rows);
    }
}

double tk_sweep(tk_swept *rows, double little)
{
    return sets[in_use].kernels->sweep(rows, little);
}

void tk_nearest(const tk_rows *rows, const tk_centres *centres, int64_t first, int64_t last, int32_t *cell)
{
    sets[in_use].kernels->nearest(rows, rows->real == TK_FLOAT64, centres, first, last, cell);
}
