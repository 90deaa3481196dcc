/*
 * Every RPC of the master service. Handles are the server's choice, so an
 * input writes sixteen H for the session that was made last, and sixteen P for
 * the partial run. After each input the server must still answer.
 */
#include "service.h"

#include "base/mem.h"

#define HANDLE_LEN 16

static const char *const paths[] = {
    "/tensorflow.MasterService/CreateSession",
    "/tensorflow.MasterService/RunStep",
    "/tensorflow.MasterService/ExtendSession",
    "/tensorflow.MasterService/PartialRunSetup",
    "/tensorflow.MasterService/MakeCallable",
    "/tensorflow.MasterService/RunCallable",
    "/tensorflow.MasterService/ReleaseCallable",
    "/tensorflow.MasterService/ListDevices",
    "/tensorflow.MasterService/CloseSession",
    "/tensorflow.MasterService/Reset",
    "/tensorflow.MasterService/NoSuchMethod",
};

static char session[HANDLE_LEN], partial[HANDLE_LEN];

/* Every run of HANDLE_LEN times `mark` becomes the handle. */
static void put_handle(uint8_t *data, size_t len, uint8_t mark,
                       const char *handle)
{
    size_t run = 0;

    for (size_t i = 0; i < len; i++) {
        run = data[i] == mark ? run + 1 : 0;
        if (run == HANDLE_LEN) {
            memcpy(data + i + 1 - HANDLE_LEN, handle, HANDLE_LEN);
            run = 0;
        }
    }
}

/* Both answers begin with the handle, as field 1. */
static void take_handle(const struct calling *c, char *handle)
{
    if (!c->code && c->len >= 2 + HANDLE_LEN && c->head[0] == 0x0a &&
        c->head[1] == HANDLE_LEN)
        memcpy(handle, c->head + 2, HANDLE_LEN);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = mem_copy(data, size ? size : 1), *at = copy;
    uint8_t *end = copy + size;

    if (!channel)
        start("localhost", NULL);
    for (int i = 0; i < CALLS_MAX && end - at >= 3; i++) {
        size_t len = MIN((size_t)(at[1] | at[2] << 8), (size_t)(end - at - 3));
        int method = at[0] % (int)COUNT(paths);
        struct calling c;

        put_handle(at + 3, len, 'H', session);
        put_handle(at + 3, len, 'P', partial);
        call_for(&c, paths[method], at + 3, len, DEADLINE_MS);
        if (method == 0)
            take_handle(&c, session);
        if (method == 3)
            take_handle(&c, partial);
        at += 3 + len;
    }
    mem_free(copy);
    CHECK(call(paths[9], NULL, 0) != MST_UNAVAILABLE); /* ends all sessions */
    CHECK(still_serves(paths[7]));
    return 0;
}
