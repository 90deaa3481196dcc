/*
 * The index of a checkpoint, byte by byte, as a damaged disk or an ill-meaning
 * peer may leave it: every entry is listed and loaded, whole and in slices.
 *
 * A fuzzer cannot guess checksums, so each input is read twice, with them and
 * without. Data files are a pattern in memory.
 */
#include "store/bundle_load.h"

static void load(struct bundle_reader *r, struct pb_in key, const char *spec)
{
    struct status st = STATUS_INIT;
    struct bundle_read q = { .name = (const char *)key.at,
                             .name_len = cursor_left(&key),
                             .spec = spec,
                             .spec_len = strlen(spec) };

    (void)!bundle_load(r, &q, 1, NULL, &st);
    tensor_unref(&q.out);
}

static void read_all(const uint8_t *index, size_t size, bool unchecked)
{
    static uint8_t data[4096];
    struct status st = STATUS_INIT;
    struct bundle_reader keys, r;
    enum mst_code rc;

    for (size_t i = 0; i < sizeof(data) && !data[sizeof(data) - 1]; i++)
        data[i] = (uint8_t)(i * 7 % 11 + 1);
    if (bundle_reader_open_memory(&keys, index, size, data, sizeof(data),
                                  unchecked, &st))
        return;
    if (bundle_reader_open_memory(&r, index, size, data, sizeof(data),
                                  unchecked, &st))
        __builtin_trap(); /* it was good a moment ago */
    rc = bundle_reader_rewind(&keys, &st);
    while (!rc) {
        struct bundle_entry e = { 0 };
        struct pb_in key;

        rc = bundle_reader_next(&keys, &key, &e, &st);
        if (rc == MST_OK && !cursor_left(&key))
            break;
        if (rc == MST_OK) {
            load(&r, key, "");
            load(&r, key, "6 2 1,4:-");
            load(&r, key, "10 7 -:2,3");
        }
        bundle_entry_done(&e);
    }
    bundle_reader_close(&r);
    bundle_reader_close(&keys);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_all(data, size, false);
    read_all(data, size, true);
    return 0;
}
