/*
 * The codes that every call of muster returns. They are the canonical gRPC
 * codes, number for number, and so TensorFlow's: nothing is translated at the
 * wire.
 */
#ifndef MUSTER_STATUS_H
#define MUSTER_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

enum mst_code {
    MST_OK = 0,
    MST_CANCELLED = 1,
    MST_UNKNOWN = 2,
    MST_INVALID_ARGUMENT = 3,
    MST_DEADLINE_EXCEEDED = 4,
    MST_NOT_FOUND = 5,
    MST_ALREADY_EXISTS = 6,
    MST_PERMISSION_DENIED = 7,
    MST_RESOURCE_EXHAUSTED = 8,
    MST_FAILED_PRECONDITION = 9,
    MST_ABORTED = 10,
    MST_OUT_OF_RANGE = 11,
    MST_UNIMPLEMENTED = 12,
    MST_INTERNAL = 13,
    MST_UNAVAILABLE = 14,
    MST_DATA_LOSS = 15,
    MST_UNAUTHENTICATED = 16,
};

#ifdef __cplusplus
}
#endif
#endif
