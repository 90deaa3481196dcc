/*
 * The messages of every step: RunGraph and RecvTensor, as server and as
 * client. The first byte picks the message.
 */
#include <string.h>

#include "op/rendezvous.h"
#include "server/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run_graph(const uint8_t *data, size_t size)
{
    struct run_graph_request q;
    struct message_named n;
    struct message_text key;
    size_t at = 0;
    int count = 0;

    if (!run_graph_parse(&q, data, size))
        return;
    while (run_graph_next_send(&q, &at, &n))
        count++;
    CHECK(count == q.send_count);
    for (at = 0, count = 0; run_graph_next_recv(&q, &at, &key);)
        count++;
    CHECK(count == q.recv_count);
}

static void recv_request(const uint8_t *data, size_t size)
{
    struct recv_tensor_request q;
    struct rdv_key key;

    if (recv_tensor_parse(&q, data, size) && q.key.data &&
        rdv_key_parse(q.key.data, q.key.len, &key))
        CHECK(key.src_device_len + 18 < key.len);
}

/* An answer that comes in two parts, cut where the first byte says. */
static void recv_answer(const uint8_t *data, size_t size)
{
    size_t have = size ? MIN(size, (size_t)data[0] * 4) : 0;
    struct recv_tensor_answer a = { 0 };
    struct rpc_place place = { 0 };
    struct rpc_data msg = { 0 };
    struct status st = STATUS_INIT;
    uint8_t *rest;

    if (size < 1)
        return;
    if (!recv_tensor_place(&a, data, have, size, &place))
        (void)recv_tensor_place(&a, data, size, size, &place);
    if (place.dest) {
        CHECK(place.skip + place.len <= size);
        memcpy(place.dest, data + place.skip, place.len);
    }
    msg.owner = buffer_new(size);
    rest = msg.owner->data;
    msg.data = rest;
    msg.len = size - place.len;
    memcpy(rest, data, place.dest ? place.skip : size);
    if (place.dest)
        memcpy(rest + place.skip, data + place.skip + place.len,
               size - place.skip - place.len);
    (void)!recv_tensor_finish(&a, &msg, &place, &st);
    tensor_unref(&a.tensor);
    buffer_unref(place.owner);
    buffer_unref(msg.owner);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    buffer_limit((size_t)256 << 20);
    switch (data[0] % 3) {
    case 0:
        run_graph(data + 1, size - 1);
        break;
    case 1:
        recv_request(data + 1, size - 1);
        break;
    default:
        recv_answer(data + 1, size - 1);
    }
    return 0;
}
