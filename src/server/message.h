/*
 * The messages of every step, read and written by hand: RunGraph and
 * RecvTensor. Text fields of a request point into its bytes.
 */
#ifndef SERVER_MESSAGE_H
#define SERVER_MESSAGE_H

#include "rpc/msg.h"
#include "rpc/place.h"
#include "tensor/tensor.h"
#include "wire/control.h"
#include "wire/pb.h"

/* A control message as it is sent; m is overwritten. */
void message_pack(struct rpc_msg *m, const ProtobufCMessage *p);

struct message_text {
    const char *data;
    size_t len;
};

struct message_named {
    struct message_text name;
    const uint8_t *tensor; /* a TensorProto */
    size_t len;
};

struct run_graph_request {
    struct message_text session_handle, graph_handle;
    int64_t step_id, request_id;
    bool create_worker_session_called, is_partial, is_last_partial;
    bool store_errors, record_timeline;
    int send_count, recv_count;
    /* The fields themselves are walked with run_graph_next(). */
    const uint8_t *data;
    size_t len;
};

bool run_graph_parse(struct run_graph_request *r, const void *data, size_t len);
/* The i-th send or recv_key; call in order with *at starting at 0. */
bool run_graph_next_send(const struct run_graph_request *r, size_t *at,
                         struct message_named *ret);
bool run_graph_next_recv(const struct run_graph_request *r, size_t *at,
                         struct message_text *ret);

/* RunGraphResponse: appends a result, or an error. */
void run_graph_put_recv(struct rpc_msg *m, struct message_text key,
                        const struct tensor *t);
void run_graph_put_error(struct rpc_msg *m, const struct status *st);

/* The request of a master. */
void run_graph_put_request(struct rpc_msg *m,
                           const struct run_graph_request *r);

/* RunStepResponse: its results are laid out as RunGraph's. */
void run_step_put_error(struct rpc_msg *m, const struct status *st);
/* RunCallableResponse: appends a result. */
void run_callable_put_fetch(struct rpc_msg *m, const struct tensor *t);

/* What a receive says of a value that came and could not be read. */
#define MESSAGE_UNPARSABLE "could not parse rpc response"

/* A DeviceAttributes. Its physical_device_desc, which TensorFlow
 * leaves empty, says whose task it is of. */
#define MESSAGE_OURS "muster"

void message_put_device(struct pb_out *o, uint32_t field, const char *device,
                        const char *type, uint64_t incarnation);

/* Single fields. */
void message_put_bytes(struct rpc_msg *m, uint32_t field, const void *data,
                       size_t len);
void message_put_uint(struct rpc_msg *m, uint32_t field, uint64_t value);
/* A TensorProto, and one with a name; the elements by reference. */
void message_put_tensor(struct rpc_msg *m, uint32_t field,
                        const struct tensor *t);
void message_put_named(struct rpc_msg *m, uint32_t field,
                       struct message_text name, const struct tensor *t);

struct recv_tensor_request {
    int64_t step_id, request_id;
    struct message_text key;
};

bool recv_tensor_parse(struct recv_tensor_request *r, const void *data,
                       size_t len);
void recv_tensor_put_request(struct rpc_msg *m, int64_t step_id,
                             struct message_text key, int64_t request_id);
void recv_tensor_put_response(struct rpc_msg *m, const struct tensor *t,
                              bool dead);

/* The answer of a peer: what of it was placed while it came in, and the rest.*/
struct recv_tensor_answer {
    struct tensor tensor;
    bool placed, dead;
};

/* For rpc_place_fn. */
bool recv_tensor_place(struct recv_tensor_answer *a, const uint8_t *head,
                       size_t have, size_t total, struct rpc_place *ret);
enum mst_code recv_tensor_finish(struct recv_tensor_answer *a,
                                 const struct rpc_data *msg,
                                 const struct rpc_place *placed,
                                 struct status *st) MUST_USE;

/* A serialized GrpcPayloadContainer that says: this worker has restarted. */
extern const uint8_t message_restarted[];
extern const size_t message_restarted_len;
bool message_is_restarted(const uint8_t *details, size_t len);

#endif
