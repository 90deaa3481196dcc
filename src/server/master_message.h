/*
 * The messages of MasterService, read and written by hand. Texts of a request
 * point into its bytes.
 */
#ifndef SERVER_MASTER_MESSAGE_H
#define SERVER_MASTER_MESSAGE_H

#include "graph/partition.h"
#include "server/message.h"

/* RunStepRequest, PartialRunSetupRequest, and what a callable is made of. */
struct run_step_request {
    struct message_text session_handle, partial_handle;
    int64_t request_id;
    bool store_errors;
    bool trace, partition_graphs; /* of RunOptions */
    int64_t timeout_ms;           /* the same */
    int feed_count, fetch_count, target_count;
    struct message_named *feeds; /* without tensors in a set-up */
    struct part_name *fetches, *targets;
    struct part_name *links; /* of a callable: in pairs, from and to */
    int link_count;          /* of names */
    void *memory;
};

/* On failure nothing is left to be freed. */
bool run_step_parse(struct run_step_request *r, const void *data, size_t len);
bool partial_setup_parse(struct run_step_request *r, const void *data,
                         size_t len);
/* MakeCallableRequest. */
bool make_callable_parse(struct run_step_request *r, const void *data,
                         size_t len);
void run_step_free(struct run_step_request *r);

/* RunCallableRequest: feeds are TensorProtos in the callable's order. */
struct run_callable_request {
    struct message_text session_handle;
    int64_t handle, request_id;
    int feed_count;
    const uint8_t *data;
    size_t len;
};
bool run_callable_parse(struct run_callable_request *r, const void *data,
                        size_t len);
/* The next feed; call with *at starting at 0. */
bool run_callable_next(const struct run_callable_request *r, size_t *at,
                       struct message_named *ret);

/* The options of a session that matter to the master. */
struct session_config {
    bool soft_placement, log_placement, isolate;
    bool plain;       /* wants its graphs run as they are: opt_level L0 */
    bool own_threads; /* asks for pools of its own, which TensorFlow refuses */
    struct part_name *filters;
    int filter_count;
    int64_t timeout_ms;          /* of every step */
    struct message_text cluster; /* a ClusterDef, or nothing */
    bool share;                  /* also with a cluster of its own */
    /* Of a server, not of a client; 0: not said. */
    int cpus;    /* devices */
    int threads; /* the larger of the two numbers there are */
};
bool session_config_parse(struct session_config *c, const void *data,
                          size_t len);
void session_config_free(struct session_config *c);

#endif
