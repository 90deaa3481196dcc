/*
 * A reader: takes names of files from a queue and gives out their records one
 * by one.
 *
 * A read may have to wait for a name, and reads of one reader come one after
 * the other. No thread waits meanwhile: who uses the reader has its turn, the
 * others stand in line (kernel/wait.h) until the turn is handed on. A turn that
 * needs a name asks the queue as a dequeue would and goes on when it has one;
 * files are read on the pool's threads.
 *
 * What is not under the lock belongs to whose turn it is.
 */
#ifndef KERNEL_READER_H
#define KERNEL_READER_H

#include <stdio.h>

#include "kernel/unzip.h"
#include "kernel/wait.h"
#include "store/record.h"

struct reader;

/* What one read gave. */
struct reader_record {
    struct text key, value;
    bool produced, at_end;
};

struct reader_kind {
    const char *name;
    enum mst_code (*open)(struct reader *r, struct status *st);
    enum mst_code (*read)(struct reader *r, struct reader_record *ret,
                          struct status *st);
    void (*close)(struct reader *r); /* accepts one that is not open */
    bool keeps_state;                /* can be saved and restored */
};

extern const struct reader_kind reader_identity, reader_whole_file,
    reader_text_line, reader_fixed_length, reader_tf_record;

struct reader_config {
    const struct reader_kind *kind;
    int64_t skip_lines, header, record, footer, hop;
    enum unzip_format format;
};

struct reader {
    struct object o; /* kind: &reader_object_kind */
    char *name;
    struct reader_config config;
    pthread_mutex_t lock;
    struct wait_line line; /* under lock */
    bool busy;             /* under lock: it is someone's turn */
    int64_t started, finished, produced;
    char *work; /* the file's name */
    size_t work_len;
    /* Of the open file, as its kind needs it. */
    FILE *file;
    char *row;
    size_t row_room;
    int64_t number;
    struct text bytes; /* of a file that is held whole */
    struct record_reader records;
    bool records_open;
};

extern const struct object_kind reader_object_kind;

struct reader *reader_new(const char *name, const struct reader_config *g);
/* As if nothing had been read. */
void reader_reset(struct reader *r);

/*
 * The op's turn: fn is called when it has come, and ends it with
 * reader_turn_end(). Takes over one reference of r. For ops with OP_ASYNC; the
 * op's scratch memory is the turn's. `pool`: fn reads files.
 */
struct reader_turn;
enum mst_code reader_turn(struct reader *r, struct op_ctx *c,
                          void (*fn)(struct reader_turn *t),
                          bool pool) MUST_USE;

struct reader_turn {
    struct wait wait;
    struct reader *r;
    struct op_ctx *c;
    void (*fn)(struct reader_turn *t);
    struct pool_job job;
    bool pool;
    void *arg; /* fn's */
};

/* Calls fn again, on the pool. */
void reader_turn_again(struct reader_turn *t, void (*fn)(struct reader_turn *));
/* Hands the turn on and finishes the op. */
void reader_turn_end(struct reader_turn *t, enum mst_code code);

#endif
