/*
 * Memory that two processes of one host share, for what one of them makes and
 * the other uses: a value is copied into a block once and used where it lies.
 *
 * The one that sends has a struct shm_out. It makes segments, each cut into
 * blocks of one size, as anonymous files: they have no name, so nothing is
 * left behind when either process dies. A segment is sealed against shrinking,
 * so the reader cannot be made to fault. Its first page is a table of one word
 * a block: 1 while the block is the reader's, who writes 0 when it lets go. No
 * message is needed for that, and everything else that the sender knows of its
 * blocks is in memory of its own.
 *
 * The one that receives has a struct shm_in, which maps the segments that it
 * is handed and makes buffers of blocks, without an allocation. A buffer may
 * outlive the shm_in and the other process.
 *
 * Threads: shm_out's functions from any; shm_in's from one, but the buffers
 * end on any.
 */
#ifndef IO_SHM_H
#define IO_SHM_H

#include "base/buffer.h"

struct shm_out;
struct shm_in;

struct shm_block {
    uint32_t segment, index;
    uint8_t *data;
};

struct shm_segment {
    int fd;
    uint32_t count; /* of blocks */
    uint64_t room;  /* of each */
};

struct shm_out *shm_out_new(void);
void shm_out_free(struct shm_out *o); /* accepts NULL */
/* A block of at least that size; false when there is none to be had, and the
 * bytes have to go another way. If it lies in a new segment, ret_new says so
 * (else its fd is -1): the reader has to get that first. The fd is the
 * caller's to close. */
bool shm_out_take(struct shm_out *o, size_t size, struct shm_block *ret,
                  struct shm_segment *ret_new) MUST_USE;

struct shm_in *shm_in_new(void);
void shm_in_free(struct shm_in *in); /* accepts NULL */
/* The next segment; takes the fd. False when it is not what it should be. */
bool shm_in_add(struct shm_in *in, const struct shm_segment *s) MUST_USE;
/* A block that the sender filled; NULL when there is no such block, or it is
 * still in use. */
struct buffer *shm_in_buffer(struct shm_in *in, uint32_t segment,
                             uint32_t index, size_t size);

/* Bytes of blocks that senders of this process have made so far, and what
 * they may come to: a quarter of the machine's memory at first. */
void shm_limit(size_t bytes);

#endif
