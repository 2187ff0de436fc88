/* AVX2 with FMA: vectors of 256 bits; see vec.h. */
#include <immintrin.h>
/* n ones followed by zeros begin at [8 - n]; doubles take the same table two entries at a time. */
#ifndef TK_MASKS
#define TK_MASKS
static const int32_t v_masks[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
#endif

#if TK_IS_FLOAT
#define V __m256
#define VLEN 8
#define v_zero() _mm256_setzero_ps()
#define v_set1(a) _mm256_set1_ps(a)
#define v_load(p) _mm256_loadu_ps(p)
#define v_store(p, v) _mm256_storeu_ps(p, v)
#define v_fma(a, b, c) _mm256_fmadd_ps(a, b, c)
#define v_mul(a, b) _mm256_mul_ps(a, b)
#define v_add(a, b) _mm256_add_ps(a, b)
#define v_div(a, b) _mm256_div_ps(a, b)
#define v_sqrt(a) _mm256_sqrt_ps(a)
#define v_min(a, b) _mm256_min_ps(a, b)
#define v_mask_f(n) _mm256_loadu_si256((const __m256i *)(v_masks + 8 - (n)))
#define v_load_n(p, n) _mm256_maskload_ps(p, v_mask_f(n))
#define v_store_n(p, v, n) _mm256_maskstore_ps(p, v_mask_f(n), v)
#else
#define V __m256d
#define VLEN 4
#define v_zero() _mm256_setzero_pd()
#define v_set1(a) _mm256_set1_pd(a)
#define v_load(p) _mm256_loadu_pd(p)
#define v_store(p, v) _mm256_storeu_pd(p, v)
#define v_fma(a, b, c) _mm256_fmadd_pd(a, b, c)
#define v_mul(a, b) _mm256_mul_pd(a, b)
#define v_add(a, b) _mm256_add_pd(a, b)
#define v_div(a, b) _mm256_div_pd(a, b)
#define v_sqrt(a) _mm256_sqrt_pd(a)
#define v_min(a, b) _mm256_min_pd(a, b)
#define v_mask_d(n) _mm256_loadu_si256((const __m256i *)(v_masks + 8 - 2 * (n)))
#define v_load_n(p, n) _mm256_maskload_pd(p, v_mask_d(n))
#define v_store_n(p, v, n) _mm256_maskstore_pd(p, v_mask_d(n), v)
#define v_widen(p) _mm256_cvtps_pd(_mm_loadu_ps(p))
#endif

#ifndef ULEN
#define ULEN 8
static inline void u_shift(uint32_t *to, uint32_t base, const uint32_t *from)
{
    const __m256i v = _mm256_loadu_si256((const __m256i *)from);
    _mm256_storeu_si256((__m256i *)to, _mm256_add_epi32(v, _mm256_set1_epi32((int)base)));
}
#endif
