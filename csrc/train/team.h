/* Threads that run a pass together. They are the caller's; here they only wait for one another. */
#ifndef TK_TEAM_H
#define TK_TEAM_H

#include "tk.h"

/* Threads come here, each with its number; what they wrote before is seen by all. For the last one it returns 1 at
 * once: that one may do something alone, and then releases the others, for which it returns 0. No team: there is one
 * thread. */
int tk_arrive(tk_team *team, int32_t me);
void tk_release(tk_team *team);

/* Returns when all threads of the team have come here. */
static inline void tk_meet(tk_team *team, int32_t me)
{
    if (tk_arrive(team, me))
        tk_release(team);
}

/* The next of some pieces of work, which threads take as they come: 0, 1, 2, ... Nothing may depend on who takes which.
 */
int32_t tk_take(int32_t *next);

/* A clock, in seconds. */
double tk_seconds(void);

static inline int32_t tk_team_size(const tk_team *team)
{
    return team ? team->n : 1;
}

static inline int32_t tk_team_room(const tk_team *team)
{
    return team ? team->most : 1;
}

#endif
