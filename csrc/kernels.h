/* What one compilation of kernels.c offers to the dispatcher: the verbs of tk.h, per real type; and what the kernels
 * and the training passes share. */
#ifndef TK_KERNELS_H
#define TK_KERNELS_H

#include "tk.h"

#if defined(_MSC_VER)
#define FORCE_INLINE __forceinline
#define NOINLINE __declspec(noinline)
#define UNROLL
#elif defined(__clang__)
#define FORCE_INLINE inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
#define UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__SANITIZE_ADDRESS__) /* inlined and watched, they would take the compiler many minutes */
#define FORCE_INLINE inline
#define NOINLINE __attribute__((noinline))
#define UNROLL
#else
#define FORCE_INLINE inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
#define UNROLL _Pragma("GCC unroll 16")
#endif

typedef struct {
    void (*dot)(const tk_rows *, const tk_map *, int64_t, int64_t, const tk_table *, void *, void *, const tk_parts *,
                int);
    void (*add)(const tk_rows *, const tk_map *, int64_t, int64_t, const tk_table *, const void *, void *, int32_t,
                int32_t);
    void (*expand)(const tk_rows *, const tk_map *, int64_t, int64_t, const tk_features *, void *);
    void (*weigh)(const tk_map *, int32_t, int32_t, const tk_table *, void *);
    void (*adapt)(const tk_rows *, const tk_map *, int64_t, int64_t, const tk_adaptive *, const void *, void *, int32_t,
                  int32_t);
    void (*shrink)(const tk_adaptive *, double, int64_t, int64_t);
    void (*gram)(const tk_rows *, const tk_map *, int64_t, int64_t, double *, void *, int);
    void (*factors)(const tk_rows *, const tk_map *, int64_t, int64_t, double *);
} tk_verbs;

enum { SPARE = 8 }; /* numbers: no vector has more of them */

/* Some rows of a block, of which the dual moves one output. */
typedef struct {
    const tk_targets *targets;
    double C;
    int64_t n;                     /* rows */
    const double *gram;            /* [n][n], and SPARE more that may be read; */
    double *f;                     /* [n], and SPARE more that may be written */
    double *alpha;                 /* [n] */
    double *sign, *omega, *target; /* [n] what is asked of them */
    int32_t *moving;               /* [n] which of them are to be swept, rising, */
    int32_t n_moving;              /* and how many */
} tk_swept;

typedef struct {
    void (*nearest)(const tk_rows *, int, const tk_centres *, int64_t, int64_t, int32_t *);
    double (*sweep)(tk_swept *, double);
    tk_verbs real[2]; /* indexed by tk_real */
} tk_kernels;

/* To be read: memory that large data has in no cache. What is not for the next few rows comes into the second cache
 * only; in the first one it would take the place of slots. */
static inline void tk_prefetch(const void *at, const int later)
{
#if defined(__GNUC__)
    if (later)
        __builtin_prefetch(at, 0, 2);
    else
        __builtin_prefetch(at);
#else
    (void)at, (void)later;
#endif
}

#define TK_PREFETCH(at) tk_prefetch(at, 0)
#define TK_PREFETCH_LATER(at) tk_prefetch(at, 1)

/* The same for so many bytes. They begin anywhere in a cache line, and so may end in one more. */
static inline void tk_fetch(const void *at, int64_t bytes, const int later)
{
    for (int64_t b = 0; b < bytes; b += 64)
        tk_prefetch((const char *)at + b, later);
    if (bytes > 0)
        tk_prefetch((const char *)at + bytes - 1, later);
}

/* One round of coordinate steps over the rows that are moving: of these, those stay whose change is more than little.
 * Returns the largest change. */
double tk_sweep(tk_swept *rows, double little);

extern const tk_kernels tk_kernels_baseline;
extern const tk_kernels tk_kernels_avx2;
extern const tk_kernels tk_kernels_avx512;

#endif
