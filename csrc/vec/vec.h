/* A vector of reals and the few operations that the kernels need, for the instruction set that is compiled for.
 *
 * Included once per real type, with TK_IS_FLOAT set to 1 or 0. Each instruction set is a file that defines V (the
 * vector), VLEN (its length) and v_*; ULEN and u_shift(to, base, from), which is to[i] = from[i] + base, are the same
 * for unsigned integers. v_load_n and v_store_n touch the first n elements only, 0 < n < VLEN, and read the others as
 * 0; v_widen makes doubles of as many floats. A product of matrices is done in tiles of TILE_ROWS x TILE_VECTORS
 * vectors, which are kept in registers; PAIRS says that there are some left for twice LANES factors.
 */
#undef V
#undef VLEN
#undef v_zero
#undef v_set1
#undef v_load
#undef v_store
#undef v_fma
#undef v_mul
#undef v_add
#undef v_div
#undef v_sqrt
#undef v_min
#undef v_load_n
#undef v_store_n
#undef v_widen

#undef TILE_ROWS
#undef TILE_VECTORS
#undef PAIRS
#undef DENSE_GROUP
#define TILE_VECTORS 3
#if defined(__AVX512F__) || defined(__aarch64__) || defined(_M_ARM64)
#define TILE_ROWS 8
#define PAIRS 1
#define DENSE_GROUP 3
#else
#define TILE_ROWS 4
#define PAIRS 0
#define DENSE_GROUP 1
#endif

/* Keeps a vector in its register: compilers like to load it again for each use. */
#undef v_keep
#if defined(__GNUC__) && defined(__AVX512F__)
#define v_keep(v) __asm__("" : "+v"(v))
#else
#define v_keep(v) (void)0
#endif

#if defined(__AVX512F__)
#include "avx512.h"
#elif defined(__AVX2__)
#include "avx2.h"
#elif defined(__aarch64__) || defined(_M_ARM64)
#include "neon.h"
#elif defined(__SSE2__) || defined(_M_X64)
#include "sse2.h"
#else
#include "plain.h"
#endif

#ifndef v_load_n
static inline V NAME(v_load_part)(const real *p, int n)
{
    real part[VLEN] = {0};
    for (int i = 0; i < n; i++)
        part[i] = p[i];
    return v_load(part);
}

static inline void NAME(v_store_part)(real *p, V v, int n)
{
    real part[VLEN];
    v_store(part, v);
    for (int i = 0; i < n; i++)
        p[i] = part[i];
}

#define v_load_n(p, n) NAME(v_load_part)(p, n)
#define v_store_n(p, v, n) NAME(v_store_part)(p, v, n)
#endif

/* 1 / sqrt(h), within a few units of the last place: from an estimate, by Newton's steps y += y/2 (1 - h y^2), where
 * the CPU has one. That is several times faster than a root and a division. h is positive; what is too large for h y^2
 * is taken for a little less. */
static inline V NAME(v_rsqrt)(V h)
{
#if defined(__AVX512F__) && TK_IS_FLOAT
    h = v_min(h, v_set1(1e37f));
    V y = _mm512_rsqrt14_ps(h);
    const int steps = 1;
#elif defined(__AVX512F__)
    h = v_min(h, v_set1(1e300));
    V y = _mm512_rsqrt14_pd(h);
    const int steps = 2;
#elif defined(__AVX2__) && TK_IS_FLOAT
    h = v_min(h, v_set1(1e37f));
    V y = _mm256_rsqrt_ps(h);
    const int steps = 2;
#else
    V y = v_div(v_set1(1), v_sqrt(h));
    const int steps = 0;
#endif
    for (int i = 0; i < steps; i++) {
        const V off = v_fma(v_mul(v_mul(h, y), v_set1(-1)), y, v_set1(1));
        y = v_fma(v_mul(y, v_set1((real)0.5)), off, y);
    }
    return y;
}

/* Numbers from all over a table: W, a vector of at most eight, for the addresses of which there are registers. They are
 * loaded and stored one by one: gathers are hardly quicker, scatters are not, and on some CPUs both take several times
 * as long. */
#undef W
#undef WLEN
#undef w_set1
#undef w_load
#undef w_store
#undef w_mul
#undef w_fma
#if defined(__AVX512F__) && TK_IS_FLOAT
#define W __m256
#define WLEN 8
#define w_set1(a) _mm256_set1_ps(a)
#define w_load(p) _mm256_loadu_ps(p)
#define w_store(p, v) _mm256_storeu_ps(p, v)
#define w_mul(a, b) _mm256_mul_ps(a, b)
#define w_fma(a, b, c) _mm256_fmadd_ps(a, b, c)
#else
#define W V
#define WLEN VLEN
#define w_set1(a) v_set1(a)
#define w_load(p) v_load(p)
#define w_store(p, v) v_store(p, v)
#define w_mul(a, b) v_mul(a, b)
#define w_fma(a, b, c) v_fma(a, b, c)
#endif

#if defined(__AVX2__) && TK_IS_FLOAT
static inline __m128 w_four_float(const float *base, const uint32_t *offset)
{
    __m128 v = _mm_load_ss(base + offset[0]);
    v = _mm_insert_ps(v, _mm_load_ss(base + offset[1]), 0x10);
    v = _mm_insert_ps(v, _mm_load_ss(base + offset[2]), 0x20);
    return _mm_insert_ps(v, _mm_load_ss(base + offset[3]), 0x30);
}
#elif defined(__AVX2__)
static inline __m256d w_four_double(const double *base, const uint32_t *offset)
{
    const __m128d low = _mm_loadh_pd(_mm_load_sd(base + offset[0]), base + offset[1]);
    const __m128d high = _mm_loadh_pd(_mm_load_sd(base + offset[2]), base + offset[3]);
    return _mm256_insertf128_pd(_mm256_castpd128_pd256(low), high, 1);
}
#endif

static inline W NAME(w_gather)(const real *base, const uint32_t *offset)
{
#if defined(__AVX2__) && TK_IS_FLOAT
    return _mm256_insertf128_ps(_mm256_castps128_ps256(w_four_float(base, offset)), w_four_float(base, offset + 4), 1);
#elif defined(__AVX512F__)
    return _mm512_insertf64x4(_mm512_castpd256_pd512(w_four_double(base, offset)), w_four_double(base, offset + 4), 1);
#elif defined(__AVX2__)
    return w_four_double(base, offset);
#else
    real part[WLEN];
    for (int i = 0; i < WLEN; i++)
        part[i] = base[offset[i]];
    return w_load(part);
#endif
}

static inline void NAME(w_scatter)(real *base, const uint32_t *offset, W v)
{
    real part[WLEN];
    w_store(part, v);
    UNROLL for (int i = 0; i < WLEN; i++)
        base[offset[i]] = part[i];
}

static inline W NAME(w_rsqrt)(W h)
{
#if defined(__AVX512F__) && TK_IS_FLOAT
    return _mm512_castps512_ps256(v_rsqrt_float(_mm512_castps256_ps512(h)));
#else
    return NAME(v_rsqrt)(h);
#endif
}

/* The sum of a vector's elements, in pairs: quicker than one after the other. */
static inline real NAME(v_sum)(V v)
{
#if defined(__AVX512F__) && TK_IS_FLOAT
    return _mm512_reduce_add_ps(v);
#elif defined(__AVX512F__)
    return _mm512_reduce_add_pd(v);
#elif defined(__AVX2__) && TK_IS_FLOAT
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
#elif defined(__AVX2__)
    const __m128d half = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
    return _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)));
#else
    real part[VLEN];
    v_store(part, v);
    for (int n = VLEN / 2; n > 0; n /= 2)
        for (int i = 0; i < n; i++)
            part[i] += part[i + n];
    return part[0];
#endif
}
