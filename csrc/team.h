/* Threads that run a pass together. They are the caller's; here they only wait for one another. */
#ifndef TK_TEAM_H
#define TK_TEAM_H

#include "tk.h"

/* Returns when all threads of the team have come here, each with its number; what they wrote before is seen by all.
 * NULL: at once. */
void tk_meet(tk_team *team, int32_t me);

/* The next of some pieces of work, which threads take as they come: 0, 1, 2, ... Nothing may depend on who takes which.
 */
int32_t tk_take(int32_t *next);

/* A clock, in seconds. */
double tk_seconds(void);

static inline int32_t tk_team_size(const tk_team *team)
{
    return team ? team->n : 1;
}

#endif
