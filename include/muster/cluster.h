/*
 * Who is in a running job: workers that are added, removed and listed while it
 * trains. The calls go to a server of muster, usually a parameter server, by
 * its session target ("grpc://ps0:2222" or "ps0:2222"); any one suffices.
 *
 * All calls wait for the answer, up to timeout_ms (0: ten seconds), and may be
 * made from any thread. Codes: INVALID_ARGUMENT for a bad index or address,
 * ALREADY_EXISTS for an index whose worker is alive elsewhere or an address
 * that is taken, NOT_FOUND for a worker that was never there, UNAVAILABLE when
 * the server cannot be reached, UNIMPLEMENTED when it is not one of ours.
 */
#ifndef MUSTER_CLUSTER_H
#define MUSTER_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "muster/api.h"

#ifdef __cplusplus
extern "C" {
#endif

enum mst_member_state {
    MST_MEMBER_UNKNOWN, /* not heard of yet */
    MST_MEMBER_ALIVE,
    MST_MEMBER_GONE
};

struct mst_member {
    const char *job;
    int task;
    const char *address; /* NULL: it was removed */
    uint64_t since_ms;   /* wall clock: added, moved or removed */
    enum mst_member_state state;
    uint64_t state_since_ms;
    uint64_t heard_ms; /* last sign of life; 0: none yet */
    unsigned sessions; /* of its master on the server that was asked */
};

struct mst_members {
    struct mst_member *at; /* by job and task */
    size_t count;
    uint64_t revision; /* of the table of the server that was asked */
    uint64_t instance; /* and which of its starts counts so */
};

/* What became of a change. */
struct mst_change {
    bool changed;     /* false: it stood so before */
    unsigned reached; /* parameter servers that have it on disk */
    unsigned missed;  /* and those that will get it when they are back */
};

struct mst_change_opts {
    const char *job;     /* NULL: "worker" */
    bool replace;        /* add: also when the index is a live worker's */
    const char *only_at; /* remove: only while it is there; NULL: anywhere */
    uint64_t timeout_ms;
};

/* opts and change may be NULL. */
MST_API enum mst_code mst_cluster_add_worker(const char *target, int task,
                                             const char *address,
                                             const struct mst_change_opts *opts,
                                             struct mst_change *change,
                                             struct mst_error *error);
MST_API enum mst_code
mst_cluster_remove_worker(const char *target, int task,
                          const struct mst_change_opts *opts,
                          struct mst_change *change, struct mst_error *error);
/* Gives an index that is nobody else's to a worker at an address; ":2222" means
 * the host that the call comes from. Asking again gives the same index. The
 * members are those of the whole cluster, *self is the one that was asked for;
 * with these it can start. All parameter servers have to be up. */
MST_API enum mst_code mst_cluster_join(const char *target, const char *address,
                                       const struct mst_change_opts *opts,
                                       struct mst_members **members,
                                       const struct mst_member **self,
                                       struct mst_error *error);
/* To be freed with mst_members_free(). */
MST_API enum mst_code mst_cluster_list(const char *target, uint64_t timeout_ms,
                                       struct mst_members **members,
                                       struct mst_error *error);
/* What changed since an earlier answer of this call, as soon as there is
 * something; all members when `since` is NULL or the server was started anew.
 * OK with none when timeout_ms passes without a change:
 *
 *   struct mst_members *now, *last = NULL;
 *
 *   while (!mst_cluster_watch(target, last, 30000, &now, &error)) {
 *       mst_members_free(last);
 *       last = now;
 *       show(now);
 *   }
 */
MST_API enum mst_code mst_cluster_watch(const char *target,
                                        const struct mst_members *since,
                                        uint64_t timeout_ms,
                                        struct mst_members **members,
                                        struct mst_error *error);
/* NULL is taken. */
MST_API void mst_members_free(struct mst_members *members);

#ifdef __cplusplus
}
#endif

#endif
