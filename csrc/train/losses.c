#include "losses.h"

#define ENTRY(name) [TK_NUMBER(name)] = &tk_##name,
static const tk_loss *const losses[] = {TK_OUTPUT_LOSSES(ENTRY) TK_ROW_LOSSES(ENTRY)};
#undef ENTRY

int32_t tk_n_losses(void)
{
    return N_LOSSES;
}

const tk_loss *tk_loss_at(int32_t number)
{
    return losses[number];
}
