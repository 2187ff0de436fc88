/* What the machine can do at best: loops that bench/roofs.py compiles for the machine that it runs on. */
#include <stdint.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

/* The inner product of stored pairs with a table: what a row costs whose features have been written down. */
#define PLAIN_DOT(NAME, REAL)                                                                                          \
    static REAL NAME(const int32_t *index, const REAL *value, int64_t n, const REAL *table)                            \
    {                                                                                                                  \
        REAL sum[4] = {0, 0, 0, 0};                                                                                    \
        int64_t i = 0;                                                                                                 \
        for (; i + 4 <= n; i += 4)                                                                                     \
            for (int k = 0; k < 4; k++)                                                                                \
                sum[k] += value[i + k] * table[index[i + k]];                                                          \
        for (; i < n; i++)                                                                                             \
            sum[0] += value[i] * table[index[i]];                                                                      \
        return (sum[0] + sum[1]) + (sum[2] + sum[3]);                                                                  \
    }
PLAIN_DOT(plain_f32, float)
PLAIN_DOT(plain_f64, double)

/* The same by the machine's gathers, four at a time. */
#if defined(__AVX512F__)
#define LOAD_INDEX_F32(at) _mm512_loadu_si512(at)
#define LOAD_INDEX_F64(at) _mm256_loadu_si256((const __m256i *)(at))
#define VECTOR_F32 __m512
#define VECTOR_F64 __m512d
#define LANES_F32 16
#define LANES_F64 8
#define GATHER_F32(index, table) _mm512_i32gather_ps(index, table, 4)
#define GATHER_F64(index, table) _mm512_i32gather_pd(index, table, 8)
#define P(name) _mm512_##name
#elif defined(__AVX2__) && defined(__FMA__)
#define LOAD_INDEX_F32(at) _mm256_loadu_si256((const __m256i *)(at))
#define LOAD_INDEX_F64(at) _mm_loadu_si128((const __m128i *)(at))
#define VECTOR_F32 __m256
#define VECTOR_F64 __m256d
#define LANES_F32 8
#define LANES_F64 4
#define GATHER_F32(index, table) _mm256_i32gather_ps(table, index, 4)
#define GATHER_F64(index, table) _mm256_i32gather_pd(table, index, 8)
#define P(name) _mm256_##name
#endif

#if defined(P)
#define GATHER_DOT(NAME, REAL, SUFFIX, VECTOR, LANES, LOAD_INDEX, GATHER, REST)                                        \
    static REAL NAME(const int32_t *index, const REAL *value, int64_t n, const REAL *table)                            \
    {                                                                                                                  \
        VECTOR sum[4];                                                                                                 \
        REAL lanes[LANES], total;                                                                                      \
        int64_t i = 0;                                                                                                 \
        for (int k = 0; k < 4; k++)                                                                                    \
            sum[k] = P(setzero_##SUFFIX)();                                                                            \
        for (; i + 4 * LANES <= n; i += 4 * LANES)                                                                     \
            for (int k = 0; k < 4; k++)                                                                                \
                sum[k] = P(fmadd_##SUFFIX)(GATHER(LOAD_INDEX(index + i + k * LANES), table),                           \
                                           P(loadu_##SUFFIX)(value + i + k * LANES), sum[k]);                          \
        for (; i + LANES <= n; i += LANES)                                                                             \
            sum[0] = P(fmadd_##SUFFIX)(GATHER(LOAD_INDEX(index + i), table), P(loadu_##SUFFIX)(value + i), sum[0]);    \
        sum[0] = P(add_##SUFFIX)(P(add_##SUFFIX)(sum[0], sum[1]), P(add_##SUFFIX)(sum[2], sum[3]));                    \
        P(storeu_##SUFFIX)(lanes, sum[0]);                                                                             \
        total = REST(index + i, value + i, n - i, table);                                                              \
        for (int k = 0; k < LANES; k++)                                                                                \
            total += lanes[k];                                                                                         \
        return total;                                                                                                  \
    }
GATHER_DOT(gather_f32, float, ps, VECTOR_F32, LANES_F32, LOAD_INDEX_F32, GATHER_F32, plain_f32)
GATHER_DOT(gather_f64, double, pd, VECTOR_F64, LANES_F64, LOAD_INDEX_F64, GATHER_F64, plain_f64)
#else
#define gather_f32 plain_f32
#define gather_f64 plain_f64
#endif

/* out[i] for n rows in CSR; `group` rows are gone through `repeats` times before the next ones. */
#define DOT_ROWS(NAME, REAL, DOT)                                                                                      \
    void NAME(const int64_t *indptr, const int32_t *index, const REAL *value, const REAL *table, REAL *out, int64_t n, \
              int64_t group, int64_t repeats)                                                                          \
    {                                                                                                                  \
        for (int64_t first = 0; first < n; first += group)                                                             \
            for (int64_t repeat = 0; repeat < repeats; repeat++)                                                       \
                for (int64_t i = first; i < first + group && i < n; i++)                                               \
                    out[i] = DOT(index + indptr[i], value + indptr[i], indptr[i + 1] - indptr[i], table);              \
    }
DOT_ROWS(rows_plain_f32, float, plain_f32)
DOT_ROWS(rows_plain_f64, double, plain_f64)
DOT_ROWS(rows_gather_f32, float, gather_f32)
DOT_ROWS(rows_gather_f64, double, gather_f64)

/* n rounds of as many independent fused multiply-adds as fill both units; returns how many there were. */
#if defined(__AVX512F__)
enum { BYTES = 64, CHAINS = 16 };
#else
enum { BYTES = 32, CHAINS = 10 };
#endif
#define FMA_LOOP(NAME, REAL)                                                                                           \
    int64_t NAME(int64_t n, REAL *out)                                                                                 \
    {                                                                                                                  \
        typedef REAL vector __attribute__((vector_size(BYTES)));                                                       \
        vector sum[CHAINS], by = {0}, more = {0};                                                                      \
        by += out[0];                                                                                                  \
        more += out[1];                                                                                                \
        for (int k = 0; k < CHAINS; k++)                                                                               \
            sum[k] = more + (REAL)k;                                                                                   \
        for (int64_t i = 0; i < n; i++)                                                                                \
            for (int k = 0; k < CHAINS; k++)                                                                           \
                sum[k] = sum[k] * by + more;                                                                           \
        for (int k = 1; k < CHAINS; k++)                                                                               \
            sum[0] += sum[k];                                                                                          \
        out[2] = sum[0][0];                                                                                            \
        return n * CHAINS * (int64_t)(BYTES / sizeof(REAL));                                                           \
    }
FMA_LOOP(fma_f32, float)
FMA_LOOP(fma_f64, double)
