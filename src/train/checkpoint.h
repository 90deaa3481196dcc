/*
 * The folder of a training's checkpoints, as TensorFlow keeps it: files
 * `model.ckpt-STEP.*`, and a file `checkpoint` that says which is the newest
 * and which are still there. The newest few are kept.
 *
 * Names in `checkpoint` are written without the folder, so it may be moved;
 * both kinds are read. TensorFlow's tf.train.latest_checkpoint() and its
 * training sessions read what is written here, and the other way round.
 */
#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H

#include "base/status.h"

struct checkpoint_dir {
    char *dir;
    char **names; /* oldest first, without the folder */
    int count, room;
};

/* Makes the folder if there is none, and reads what `checkpoint` says. */
enum mst_code checkpoint_open(struct checkpoint_dir *c, const char *dir,
                              struct status *st) MUST_USE;
void checkpoint_close(struct checkpoint_dir *c); /* accepts a zeroed one */

/* "DIR/model.ckpt-17"; the caller's to free. */
char *checkpoint_prefix(const struct checkpoint_dir *c, int64_t step);
/* The newest that is there, or NULL; the caller's to free. */
char *checkpoint_latest(const struct checkpoint_dir *c);
/* The files of that step have been written: it is the newest from now on, and
 * those beyond `keep` are removed (0: none). */
enum mst_code checkpoint_add(struct checkpoint_dir *c, int64_t step, int keep,
                             struct status *st) MUST_USE;

#endif
