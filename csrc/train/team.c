#if defined(__linux__)
#define _GNU_SOURCE /* for syscall and for what is asked of cores */
#endif
#include "team.h"

#include <time.h>

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

/* SLEEP until *at may be other than `is`, WAKE those who sleep; GIVE_WAY to others on this core, if there are any. HERE
 * is the core of this thread. */
#if defined(__linux__)
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#define SLEEP(at, is) (void)syscall(SYS_futex, at, FUTEX_WAIT_PRIVATE, is, NULL, NULL, 0)
#define WAKE(at) (void)syscall(SYS_futex, at, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0)
#define HERE() sched_getcpu()
#else
#define SLEEP(at, is) GIVE_WAY()
#define WAKE(at) (void)0
#define HERE() (-1)
#endif
#if defined(_MSC_VER)
#define GIVE_WAY() (void)SwitchToThread()
#else
#define GIVE_WAY() (void)sched_yield()
#endif

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#define PAUSE() _mm_pause()
#else
#define PAUSE() (void)0
#endif

/* Turns that a thread waits until it looks whether it is in the way of another one: some ten microseconds, longer than
 * threads that all run are apart. And seconds until it sleeps, giving way meanwhile: to be woken takes long. On virtual
 * cores one sleep was seen to bring on the next, each of a millisecond, as if their host let both share a core of its
 * own as long as either sleeps now and then. */
enum { PATIENCE = 2000 };
static const double STAMINA = 0.02;

/* Whether it may wait on: not on the core where another thread was last seen, where one that only gave way would be
 * there again at once, and the system would let both stay. That core is left, for any other one that this thread may
 * have, if there are as many as threads; it may come back later. */
static int move_out_of_the_way(tk_team *team, int32_t me, int core)
{
    int alone = core >= 0;
    for (int32_t i = 0; i < team->n && i < TK_SEEN; i++)
        alone &= i == me || LOAD(&team->core[i]) != core;
#if defined(__linux__)
    cpu_set_t all, others;
    if (alone || core < 0 || core >= CPU_SETSIZE || sched_getaffinity(0, sizeof all, &all) || CPU_COUNT(&all) < team->n)
        return alone;
    others = all;
    CPU_CLR(core, &others);
    alone = sched_setaffinity(0, sizeof others, &others) == 0;
    if (alone)
        (void)sched_setaffinity(0, sizeof all, &all);
#endif
    return alone;
}

static void sleep_through(tk_team *team, int32_t round)
{
    ADD(&team->asleep, 1); /* whoever is the last has gone on to the next round before it looks at this, or sees it */
    while (LOAD(&team->round) == round)
        SLEEP(&team->round, round);
    ADD(&team->asleep, -1);
}

int tk_arrive(tk_team *team, int32_t me)
{
    if (!team || team->n == 1)
        return 1;
    const int32_t round = LOAD(&team->round), core = HERE();
    if (me < TK_SEEN && LOAD(&team->core[me]) != core)
        STORE(&team->core[me], core);
    if (ADD(&team->arrived, 1) == team->n)
        return 1;
    for (int turns = 0; turns < PATIENCE && LOAD(&team->round) == round; turns++)
        PAUSE();
    if (LOAD(&team->round) != round)
        return 0;
    if (move_out_of_the_way(team, me, core))
        for (const double until = tk_seconds() + STAMINA; LOAD(&team->round) == round && tk_seconds() < until;)
            GIVE_WAY();
    if (LOAD(&team->round) == round)
        sleep_through(team, round);
    return 0;
}

void tk_release(tk_team *team)
{
    if (!team || team->n == 1)
        return;
    STORE(&team->arrived, 0);
    ADD(&team->round, 1);
    if (LOAD(&team->asleep))
        WAKE(&team->round);
}

int32_t tk_take(int32_t *next)
{
    return ADD(next, 1) - 1;
}

double tk_seconds(void)
{
    struct timespec now;
    (void)timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
