/* NEON: vectors of 128 bits; see vec.h. */
#include <arm_neon.h>
#if TK_IS_FLOAT
#define V float32x4_t
#define VLEN 4
#define v_set1(a) vdupq_n_f32(a)
#define v_load(p) vld1q_f32(p)
#define v_store(p, v) vst1q_f32(p, v)
#define v_fma(a, b, c) vfmaq_f32(c, a, b)
#define v_mul(a, b) vmulq_f32(a, b)
#define v_add(a, b) vaddq_f32(a, b)
#define v_div(a, b) vdivq_f32(a, b)
#define v_sqrt(a) vsqrtq_f32(a)
#define v_min(a, b) vminq_f32(a, b)
#else
#define V float64x2_t
#define VLEN 2
#define v_set1(a) vdupq_n_f64(a)
#define v_load(p) vld1q_f64(p)
#define v_store(p, v) vst1q_f64(p, v)
#define v_fma(a, b, c) vfmaq_f64(c, a, b)
#define v_mul(a, b) vmulq_f64(a, b)
#define v_add(a, b) vaddq_f64(a, b)
#define v_div(a, b) vdivq_f64(a, b)
#define v_sqrt(a) vsqrtq_f64(a)
#define v_min(a, b) vminq_f64(a, b)
#define v_widen(p) vcvt_f64_f32(vld1_f32(p))
#endif
#define v_zero() v_set1(0)

#ifndef ULEN
#define ULEN 4
static inline void u_shift(uint32_t *to, uint32_t base, const uint32_t *from)
{
    vst1q_u32(to, vaddq_u32(vld1q_u32(from), vdupq_n_u32(base)));
}
#endif
