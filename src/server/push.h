/*
 * A value of a step as a frame of a lane: pushed by the task that made it, as
 * soon as it is made, to the one that will need it.
 *
 *   control = step id, type, rank, flags, dims, key
 *   bulk    = the elements as they lie; or, of types that are not plain (text,
 *             variants), the RecvTensorResponse that would have carried them
 *
 * A value that cannot be read there (a dataset in a variant) is a failure of
 * the step that waits for it, not of the lane: it arrives as a tensor that is
 * not set, and is passed on as one.
 */
#ifndef SERVER_PUSH_H
#define SERVER_PUSH_H

#include "op/rendezvous.h"
#include "rpc/lane.h"

/* Queued, not flushed. t may be not set: what could not be read. */
void push_send(struct lane *lane, uint8_t kind, int64_t step_id,
               const struct rdv_key *key, const struct tensor *t, bool dead);

struct push {
    int64_t step_id;
    struct rdv_key key;  /* in the frame's bytes */
    struct tensor value; /* not set: it is dead, or could not be read */
    bool dead;
};

/* False when the frame makes no sense, or there is no memory for it. On
 * success the value is the caller's. */
bool push_read(struct lane_frame *f, struct push *ret) MUST_USE;

#endif
