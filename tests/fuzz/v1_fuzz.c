/*
 * A checkpoint of the first format, byte by byte: all tensors that it lists are
 * read, whole and in a slice, with checksums and without.
 */
#include "store/v1_reader.h"

static void read_all(const uint8_t *data, size_t size, bool unchecked)
{
    static const char spec[] = "4 2 1,2:-";
    struct status st = STATUS_INIT;
    struct map_slot *slot;
    struct v1_reader r;

    if (v1_reader_open_memory(&r, data, size, unchecked, &st))
        return;
    for (size_t at = 0; (slot = map_next(&r.tensors, &at));) {
        enum dtype dtype = (enum dtype)((struct v1_tensor *)slot->value)->dtype;

        for (int sliced = 0; sliced < 2; sliced++) {
            struct tensor t = { 0 };

            (void)!v1_reader_read(&r, slot->key, slot->key_len, spec,
                                  sliced ? sizeof(spec) - 1 : 0, dtype, &t,
                                  &st);
            tensor_unref(&t);
        }
    }
    v1_reader_close(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_all(data, size, false);
    read_all(data, size, true);
    return 0;
}
