/*
 * Every RPC of the worker service. All calls run in one session, "s", which is
 * new for each input, so graph handles begin at 1. After each input the server
 * must still answer.
 *
 * No seed has an op that touches files, and names of ops are looked up by their
 * hash, which gives the fuzzer no hint how to spell one.
 */
#include "service.h"

static const char *const paths[] = {
    "/tensorflow.WorkerService/RegisterGraph",
    "/tensorflow.WorkerService/RunGraph",
    "/tensorflow.WorkerService/RecvTensor",
    "/tensorflow.WorkerService/CleanupGraph",
    "/tensorflow.WorkerService/CreateWorkerSession",
    "/tensorflow.WorkerService/DeleteWorkerSession",
    "/tensorflow.WorkerService/DeregisterGraph",
    "/tensorflow.WorkerService/CleanupAll",
    "/tensorflow.WorkerService/GetStatus",
    "/tensorflow.WorkerService/MarkRecvFinished",
    "/tensorflow.WorkerService/Logging",
    "/tensorflow.WorkerService/Tracing",
    "/tensorflow.WorkerService/GetStepSequence",
    "/tensorflow.WorkerService/RecvBuf",
    "/tensorflow.WorkerService/CompleteGroup",
    "/tensorflow.WorkerService/CompleteInstance",
    "/tensorflow.WorkerService/NoSuchMethod",
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t session[] = { 0x0a, 0x01, 's' };
    const uint8_t *at = data, *end = data + size;

    if (!channel)
        start("ps", "worker");
    call(paths[4], session, sizeof(session));
    for (int i = 0; i < CALLS_MAX && end - at >= 3; i++) {
        size_t len = MIN((size_t)(at[1] | at[2] << 8), (size_t)(end - at - 3));

        call(paths[at[0] % COUNT(paths)], at + 3, len);
        at += 3 + len;
    }
    call(paths[5], session, sizeof(session));
    CHECK(call(paths[8], NULL, 0) != MST_UNAVAILABLE);
    return 0;
}
