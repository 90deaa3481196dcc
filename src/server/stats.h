/* Step statistics: what nodes and transfers took, as StepStats messages. */
#ifndef SERVER_STATS_H
#define SERVER_STATS_H

#include "exec/step.h"
#include "server/exchange.h"
#include "wire/pb.h"

/* Appends field `number` with a StepStats of one device. */
void stats_put(struct pb_out *o, uint32_t number, const char *device,
               const struct step_stat *stats, int count);
/* The same of the transfers of a step. */
void stats_put_transfers(struct pb_out *o, uint32_t number, const char *device,
                         const struct exchange_transfer *list, int64_t step_id);

#endif
