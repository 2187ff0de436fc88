/* One number, for any CPU; see vec.h. */
#define V real
#define VLEN 1
#define v_zero() ((real)0)
#define v_set1(a) ((real)(a))
#define v_load(p) (*(p))
#define v_store(p, v) (void)(*(p) = (v))
#define v_fma(a, b, c) ((a) * (b) + (c))
#define v_mul(a, b) ((a) * (b))
#define v_add(a, b) ((a) + (b))
#define v_div(a, b) ((a) / (b))
#define v_sqrt(a) NAME(square_root)(a)
#define v_min(a, b) ((a) < (b) ? (a) : (b))
#define v_widen(p) ((real)(p)[0])

#ifndef ULEN
#define ULEN 1
static inline void u_shift(uint32_t *to, uint32_t base, const uint32_t *from)
{
    *to = *from + base;
}
#endif
