#if defined(__linux__)
#define _GNU_SOURCE /* for syscall */
#endif
#include "team.h"

/* ADD returns the sum. All of them happen in one order, which every thread sees. */
#if defined(_MSC_VER)
#include <intrin.h>
#include <windows.h>
#define ADD(at, n) (_InterlockedExchangeAdd((volatile long *)(at), n) + (n))
#define LOAD(at) _InterlockedOr((volatile long *)(at), 0)
#define STORE(at, n) (void)_InterlockedExchange((volatile long *)(at), n)
#else
#include <sched.h>
#define ADD(at, n) __atomic_add_fetch(at, n, __ATOMIC_SEQ_CST)
#define LOAD(at) __atomic_load_n(at, __ATOMIC_SEQ_CST)
#define STORE(at, n) __atomic_store_n(at, n, __ATOMIC_SEQ_CST)
#endif

/* SLEEP until *at may be other than `is`, WAKE those who sleep. Where two threads were given the same core, one that
 * only gave way would be there again at once, and the system would let both stay; one that is woken gets an idle core.
 */
#if defined(__linux__)
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#define SLEEP(at, is) (void)syscall(SYS_futex, at, FUTEX_WAIT_PRIVATE, is, NULL, NULL, 0)
#define WAKE(at) (void)syscall(SYS_futex, at, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0)
#elif defined(_MSC_VER)
#define SLEEP(at, is) (void)SwitchToThread()
#define WAKE(at) (void)0
#else
#define SLEEP(at, is) (void)sched_yield()
#define WAKE(at) (void)0
#endif

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#define PAUSE() _mm_pause()
#else
#define PAUSE() (void)0
#endif

/* Turns before a thread lets others have its core: some microseconds, longer than threads that all run are apart. */
enum { PATIENCE = 2000 };

void tk_meet(tk_team *team)
{
    if (!team || team->n == 1)
        return;
    const int32_t round = LOAD(&team->round);
    if (ADD(&team->arrived, 1) == team->n) {
        STORE(&team->arrived, 0);
        STORE(&team->round, round + 1);
        if (LOAD(&team->asleep))
            WAKE(&team->round);
        return;
    }
    for (int turns = 0; turns < PATIENCE && LOAD(&team->round) == round; turns++)
        PAUSE();
    if (LOAD(&team->round) != round)
        return;
    ADD(&team->asleep, 1); /* whoever is the last has gone on to the next round before it looks at this, or sees it */
    while (LOAD(&team->round) == round)
        SLEEP(&team->round, round);
    ADD(&team->asleep, -1);
}
