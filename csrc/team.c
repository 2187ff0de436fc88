#include "team.h"

#if defined(_MSC_VER)
#include <intrin.h>
#include <windows.h>
#define ADD(at, n) (_InterlockedExchangeAdd((volatile long *)(at), n) + (n))
#define LOAD(at) _InterlockedOr((volatile long *)(at), 0)
#define STORE(at, n) (void)_InterlockedExchange((volatile long *)(at), n)
#define GIVE_WAY() (void)SwitchToThread()
#else
#include <sched.h>
#define ADD(at, n) __atomic_add_fetch(at, n, __ATOMIC_ACQ_REL)
#define LOAD(at) __atomic_load_n(at, __ATOMIC_ACQUIRE)
#define STORE(at, n) __atomic_store_n(at, n, __ATOMIC_RELEASE)
#define GIVE_WAY() (void)sched_yield()
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
        return;
    }
    for (int turns = 0; LOAD(&team->round) == round; turns++)
        if (turns < PATIENCE)
            PAUSE();
        else
            GIVE_WAY();
}
