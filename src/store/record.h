/*
 * TFRecord files: one record after the other, each `u64 length | u32 masked
 * crc32c of the length | bytes | u32 masked crc32c of the bytes`.
 *
 * A writer appends and may be flushed at any time, as those who read event
 * files follow them while they grow. A reader checks everything, and allocates
 * no more than the file has bytes.
 *
 * Threads: one each.
 */
#ifndef STORE_RECORD_H
#define STORE_RECORD_H

#include "store/cursor.h"
#include "store/file.h"

struct record_writer {
    int fd;
    char *path;
    struct bytes pending;
};

/* Makes the file and the directories that it needs; what was in it is gone. */
enum mst_code record_writer_open(struct record_writer *w, const char *path,
                                 struct status *st) MUST_USE;
enum mst_code record_writer_add(struct record_writer *w, const void *data,
                                size_t len, struct status *st) MUST_USE;
enum mst_code record_writer_flush(struct record_writer *w,
                                  struct status *st) MUST_USE;
/* Flushes too; ends it in any case. */
enum mst_code record_writer_close(struct record_writer *w,
                                  struct status *st) MUST_USE;

struct record_reader {
    struct file_in file;
    uint64_t at;
    uint8_t *data; /* the record */
    size_t room;
};

enum mst_code record_reader_open(struct record_reader *r, const char *path,
                                 struct status *st) MUST_USE;
/* The next record, which holds until the next call. OUT_OF_RANGE at the end,
 * DATA_LOSS when it is damaged or cut off. */
enum mst_code record_reader_next(struct record_reader *r, struct pb_in *ret,
                                 struct status *st) MUST_USE;
void record_reader_close(struct record_reader *r);

#endif
