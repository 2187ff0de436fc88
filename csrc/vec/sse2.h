/* SSE2, which all x86-64 have: vectors of 128 bits; see vec.h. */
#include <emmintrin.h>
#if TK_IS_FLOAT
#define V __m128
#define VLEN 4
#define v_zero() _mm_setzero_ps()
#define v_set1(a) _mm_set1_ps(a)
#define v_load(p) _mm_loadu_ps(p)
#define v_store(p, v) _mm_storeu_ps(p, v)
#define v_fma(a, b, c) _mm_add_ps(_mm_mul_ps(a, b), c)
#define v_mul(a, b) _mm_mul_ps(a, b)
#define v_add(a, b) _mm_add_ps(a, b)
#define v_div(a, b) _mm_div_ps(a, b)
#define v_sqrt(a) _mm_sqrt_ps(a)
#define v_min(a, b) _mm_min_ps(a, b)
#else
#define V __m128d
#define VLEN 2
#define v_zero() _mm_setzero_pd()
#define v_set1(a) _mm_set1_pd(a)
#define v_load(p) _mm_loadu_pd(p)
#define v_store(p, v) _mm_storeu_pd(p, v)
#define v_fma(a, b, c) _mm_add_pd(_mm_mul_pd(a, b), c)
#define v_mul(a, b) _mm_mul_pd(a, b)
#define v_add(a, b) _mm_add_pd(a, b)
#define v_div(a, b) _mm_div_pd(a, b)
#define v_sqrt(a) _mm_sqrt_pd(a)
#define v_min(a, b) _mm_min_pd(a, b)
#define v_widen(p) _mm_cvtps_pd(_mm_castsi128_ps(_mm_loadl_epi64((const __m128i *)(p))))
#endif

#ifndef ULEN
#define ULEN 4
static inline void u_shift(uint32_t *to, uint32_t base, const uint32_t *from)
{
    const __m128i v = _mm_loadu_si128((const __m128i *)from);
    _mm_storeu_si128((__m128i *)to, _mm_add_epi32(v, _mm_set1_epi32((int)base)));
}
#endif
