/*
 * Where the partitions of a step meet: values are sent and received under a
 * key. The executor and its kernels know only this interface; the server
 * brings one that reaches other tasks, tests bring a local one.
 *
 * A key is made once, when a graph is compiled, and only inside of loops does
 * each iteration get one of its own.
 */
#ifndef OP_RENDEZVOUS_H
#define OP_RENDEZVOUS_H

#include "tensor/tensor.h"

/* "src_device;src_incarnation;dst_device;tensor_name;frame:iter" */
struct rdv_key {
    const char *text;
    size_t len;
    uint64_t hash;          /* hash_bytes of the text */
    const char *src_device; /* parts of the text, not terminated */
    size_t src_device_len;
    const char *dst_device;
    size_t dst_device_len;
    bool late; /* the value is that of the moment of the receive, not the send:
                  a reference variable that is changed in between */
};

struct rdv_recv {
    struct rdv_recv *next; /* the rendezvous' own */
    void (*done)(struct rdv_recv *r, enum mst_code code);
    /* Before done: the result. On failure st holds it. */
    struct tensor value;
    bool dead;
    struct status *st; /* the receiver's */
    void *impl;        /* the rendezvous' own */
};

struct rendezvous;

struct rendezvous_ops {
    /* Takes the tensor over. */
    enum mst_code (*send)(struct rendezvous *r, const struct rdv_key *key,
                          struct tensor *value, bool dead, struct status *st);
    /* Calls recv->done exactly once, perhaps before it returns, on any
     * thread. The key need not outlive the call. */
    void (*recv)(struct rendezvous *r, const struct rdv_key *key,
                 struct rdv_recv *recv);
    /* The thread that sent has nothing else to do for the step now: what was
     * held back to travel together goes. May be NULL. */
    void (*flush)(struct rendezvous *r);
};

struct rendezvous {
    const struct rendezvous_ops *ops;
};

/* Takes a key apart; false when it is none. The text is borrowed. */
bool rdv_key_parse(const char *text, size_t len, struct rdv_key *ret);

#endif
