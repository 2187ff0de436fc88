/* AVX-512: vectors of 512 bits; see vec.h. */
#include <immintrin.h>
#if TK_IS_FLOAT
#define V __m512
#define VLEN 16
#define v_zero() _mm512_setzero_ps()
#define v_set1(a) _mm512_set1_ps(a)
#define v_load(p) _mm512_loadu_ps(p)
#define v_store(p, v) _mm512_storeu_ps(p, v)
#define v_fma(a, b, c) _mm512_fmadd_ps(a, b, c)
#define v_mul(a, b) _mm512_mul_ps(a, b)
#define v_add(a, b) _mm512_add_ps(a, b)
#define v_div(a, b) _mm512_div_ps(a, b)
#define v_sqrt(a) _mm512_sqrt_ps(a)
#define v_min(a, b) _mm512_min_ps(a, b)
#define v_load_n(p, n) _mm512_maskz_loadu_ps((__mmask16)((1u << (n)) - 1u), p)
#define v_store_n(p, v, n) _mm512_mask_storeu_ps(p, (__mmask16)((1u << (n)) - 1u), v)
#else
#define V __m512d
#define VLEN 8
#define v_zero() _mm512_setzero_pd()
#define v_set1(a) _mm512_set1_pd(a)
#define v_load(p) _mm512_loadu_pd(p)
#define v_store(p, v) _mm512_storeu_pd(p, v)
#define v_fma(a, b, c) _mm512_fmadd_pd(a, b, c)
#define v_mul(a, b) _mm512_mul_pd(a, b)
#define v_add(a, b) _mm512_add_pd(a, b)
#define v_div(a, b) _mm512_div_pd(a, b)
#define v_sqrt(a) _mm512_sqrt_pd(a)
#define v_min(a, b) _mm512_min_pd(a, b)
#define v_load_n(p, n) _mm512_maskz_loadu_pd((__mmask8)((1u << (n)) - 1u), p)
#define v_store_n(p, v, n) _mm512_mask_storeu_pd(p, (__mmask8)((1u << (n)) - 1u), v)
#define v_widen(p) _mm512_cvtps_pd(_mm256_loadu_ps(p))
#endif

#ifndef ULEN
#define ULEN 16
static inline void u_shift(uint32_t *to, uint32_t base, const uint32_t *from)
{
    _mm512_storeu_si512(to, _mm512_add_epi32(_mm512_loadu_si512(from), _mm512_set1_epi32((int)base)));
}
#endif
