/* The losses.
 *
 * To add one: write losses/<name>.h, with its formulas and its table tk_<name>; include it here and name it in its
 * list. That is all of the code: the passes are compiled for each loss in these lists, and Python reads names, kinds
 * and constants from the tables. Say it in the docstring of svc.py (labels) or svr.py (numbers); write its formulas in
 * tests/reference.py, whose lists the tests go through. */
#ifndef TK_LOSSES_H
#define TK_LOSSES_H

#include "loss.h"

/* Of one output. */
#define TK_OUTPUT_LOSSES(EACH)                                                                                         \
    EACH(hinge)                                                                                                        \
    EACH(squared_hinge)                                                                                                \
    EACH(log_loss)                                                                                                     \
    EACH(epsilon_insensitive)                                                                                          \
    EACH(squared_epsilon_insensitive)

/* Of all outputs of a row. */
#define TK_ROW_LOSSES(EACH)                                                                                            \
    EACH(crammer_singer)                                                                                               \
    EACH(multinomial)

#define TK_NUMBER(name) number_of_##name
#define TK_ENUMERATOR(name) TK_NUMBER(name),
enum { TK_OUTPUT_LOSSES(TK_ENUMERATOR) TK_ROW_LOSSES(TK_ENUMERATOR) N_LOSSES };
#undef TK_ENUMERATOR

#include "losses/crammer_singer.h"
#include "losses/epsilon_insensitive.h"
#include "losses/hinge.h"
#include "losses/log_loss.h"
#include "losses/multinomial.h"
#include "losses/squared_epsilon_insensitive.h"
#include "losses/squared_hinge.h"

#endif
