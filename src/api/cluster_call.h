/*
 * Questions to the membership service of servers (proto/membership.proto), for
 * callers that wait: the C API and the program.
 *
 * A caller has one question, or one for each of many servers, and asks rarely.
 * So there is nothing to keep: each round has a loop and connections of its
 * own, all gone when it returns. That is also why it works in a child of
 * fork() and leaves no thread behind in a Python process.
 *
 * A server that is not up is an error at once; nothing is asked twice.
 *
 * Threads: any; the caller waits.
 */
#ifndef API_CLUSTER_CALL_H
#define API_CLUSTER_CALL_H

#include "base/status.h"
#include "wire/control.h"

struct cluster_call {
    const char *target; /* "grpc://host:port", "host:port" */
    const char *path;   /* "/muster.Membership/List" */
    const ProtobufCMessage *request;
    const ProtobufCMessageDescriptor *answers;
    struct status status;
    void *answer; /* NULL on failure; to be freed with control_free() */
};

#define CLUSTER_CALL_PATH(method) "/muster.Membership/" #method

/* All at once (up to a bound), each with that deadline. */
void cluster_call_all(struct cluster_call *calls, size_t count,
                      uint64_t timeout_ms);
/* One of them. Its status speaks to a person who knows only the target. */
MUST_USE enum mst_code cluster_call_one(struct cluster_call *call,
                                        uint64_t timeout_ms);

/* What the transport says is for those who know it; this is for a person who
 * knows the target. */
void cluster_call_explain(const char *target, const char *path,
                          uint64_t timeout_ms, struct status *st);

/* "host:port" of a target: without "grpc://" and the blanks that people leave
 * after colons; the caller's to free. INVALID_ARGUMENT if it is none. */
MUST_USE enum mst_code cluster_call_address(const char *target, char **ret,
                                            struct status *st);

#endif
