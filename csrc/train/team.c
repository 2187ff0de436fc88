#include "team.h"

/* ADD returns the sum. All of them happen in one order, which every thread sees. GIVE_WAY to others that want this
 * core, if there are any. */
#if defined(_MSC_VER)
#include <intrin.h>
#include <windows.h>
#define ADD(at, n) (_InterlockedExchangeAdd((volatile long *)(at), n) + (n))
#define LOAD(at) _InterlockedOr((volatile long *)(at), 0)
#define STORE(at, n) (void)_InterlockedExchange((volatile long *)(at), n)
#define GIVE_WAY() (void)SwitchToThread()
#else
#include <sched.h>
#define ADD(at, n) __atomic_add_fetch(at, n, __ATOMIC_SEQ_CST)
#define LOAD(at) __atomic_load_n(at, __ATOMIC_SEQ_CST)
#define STORE(at, n) __atomic_store_n(at, n, __ATOMIC_SEQ_CST)
#define GIVE_WAY() (void)sched_yield()
#endif

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#define PAUSE() _mm_pause()
#else
#define PAUSE() (void)0
#endif

/* Turns of a busy-wait, before a thread lets others have its core: some ten microseconds, longer than threads that all
 * run are apart. */
enum { PATIENCE = 2000 };

int tk_arrive(tk_team *team)
{
    if (tk_team_size(team) == 1)
        return 1;
    const int32_t round = LOAD(&team->round);
    if (ADD(&team->arrived, 1) == team->n)
        return 1;
    for (int turns = 0; LOAD(&team->round) == round; turns++)
        if (turns < PATIENCE) {
            PAUSE();
        } else {
            turns = PATIENCE;
            GIVE_WAY();
        }
    return 0;
}

void tk_release(tk_team *team)
{
    if (tk_team_size(team) == 1)
        return;
    STORE(&team->arrived, 0);
    ADD(&team->round, 1);
}
