/* Threads that run a pass together. They are the caller's; here they only wait for one another. */
#ifndef TK_TEAM_H
#define TK_TEAM_H

#include "tk.h"

/* A barrier. What threads wrote before they came is seen by all. For the last one it returns 1 at once: that one may do
 * something alone, and then releases the others, for which it returns 0. No team: there is one thread. */
int tk_arrive(tk_team *team);
void tk_release(tk_team *team);

/* Returns when all threads of the team have come here. */
static inline void tk_meet(tk_team *team)
{
    if (tk_arrive(team))
        tk_release(team);
}

static inline int32_t tk_team_size(const tk_team *team)
{
    return team ? team->n : 1;
}

#endif
