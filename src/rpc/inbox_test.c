#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <zlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "rpc/inbox.h"

#define MAX_LEN ((size_t)64 << 20)

/* A message with its prefix. */
static uint8_t *framed(const uint8_t *data, size_t len, uint8_t flag)
{
    uint8_t *f = mem_new(INBOX_PREFIX + len);

    f[0] = flag;
    f[1] = (uint8_t)(len >> 24);
    f[2] = (uint8_t)(len >> 16);
    f[3] = (uint8_t)(len >> 8);
    f[4] = (uint8_t)len;
    if (data)
        memcpy(f + INBOX_PREFIX, data, len);
    return f;
}

static uint8_t *pattern(size_t len)
{
    uint8_t *p = mem_new(len);

    for (size_t i = 0; i < len; i++)
        p[i] = (uint8_t)(i * 7 + (i >> 8));
    return p;
}

/* Feeds as a socket would: where the inbox says, if it says, and in pieces. */
static void feed_random(struct inbox *in, const uint8_t *f, size_t len,
                        uint64_t *seed)
{
    size_t at = 0;
    struct status st;

    while (at < len) {
        size_t room = 0, n = rng_next(seed) % 70000 + 1;
        uint8_t *to = rng_next(seed) % 4 ? inbox_room(in, &room) : NULL;

        n = MIN(n, len - at);
        if (rng_next(seed) % 5 == 0)
            n = MIN(n, (size_t)3);
        if (to) {
            n = MIN(n, room);
            memcpy(to, f + at, n);
        }
        assert_int_equal(inbox_feed(in, to ? to : f + at, n, &st), MST_OK);
        at += n;
    }
}

/* Decides when it has seen `ask` bytes: [skip, skip + len) go to dest. */
struct plan {
    size_t ask, skip, len;
    struct buffer *dest;
    int asked;
};

static bool place(void *arg, const uint8_t *head, size_t have, size_t total,
                  struct rpc_place *ret)
{
    struct plan *p = arg;

    p->asked++;
    for (size_t i = 0; i < have; i++)
        assert_int_equal(head[i], (uint8_t)(i * 7 + (i >> 8)));
    if (have < p->ask)
        return false;
    *ret = (struct rpc_place){ p->skip, p->dest ? p->dest->data : NULL, p->len,
                               buffer_ref(p->dest) };
    return true;
}

static void check_round(size_t total, struct plan *p, uint64_t *seed)
{
    uint8_t *msg = pattern(total), *f = framed(msg, total, 0);
    bool placed = p->dest && p->ask <= MIN(total, RPC_PLACE_HEAD);
    size_t tail = p->skip + p->len;
    struct rpc_data got;
    struct inbox in;
    struct status st;

    inbox_init(&in, MAX_LEN);
    in.place = place;
    in.place_arg = p;
    feed_random(&in, f, INBOX_PREFIX + total, seed);
    assert_int_equal(inbox_finish(&in, &got, &st), MST_OK);
    if (placed) {
        assert_int_equal(got.len, total - p->len);
        assert_memory_equal(got.data, msg, p->skip);
        assert_memory_equal(got.data + p->skip, msg + tail, total - tail);
        assert_memory_equal(p->dest->data, msg + p->skip, p->len);
        assert_ptr_equal(in.placed.dest, p->dest->data);
    } else {
        assert_int_equal(got.len, total);
        assert_memory_equal(got.data, msg, total);
    }
    if (got.owner)
        assert_int_equal((uintptr_t)got.data % BUFFER_ALIGN, 0);
    inbox_done(&in);
    mem_free(msg);
    mem_free(f);
}

static void test_inbox_places_whatever_is_asked_for(void **state)
{
    uint64_t seed = 11;

    for (int i = 0; i < 300; i++) {
        size_t total = rng_next(&seed) % (i % 3 ? 300000 : 200) + 1;
        struct plan p = { .ask = rng_next(&seed) % (i % 2 ? 40 : 90000) };

        p.skip = rng_next(&seed) % (total + 1);
        p.len = rng_next(&seed) % (total - p.skip + 1);
        if (p.len)
            p.dest = buffer_new(p.len);
        check_round(total, &p, &seed);
        if (p.dest)
            assert_true(buffer_unique(p.dest));
        buffer_unref(p.dest);
    }
}

static void test_inbox_collects_large_messages_as_they_come(void **state)
{
    size_t total = (size_t)20 << 20, at = 0;
    uint8_t *msg = pattern(total), *f = framed(msg, total, 0);
    struct rpc_data got;
    struct inbox in;
    struct status st;

    inbox_init(&in, MAX_LEN);
    assert_int_equal(inbox_feed(&in, f, INBOX_PREFIX + 1, &st), MST_OK);
    /* The claim alone is not believed. */
    assert_int_equal(in.buf->size, INBOX_TRUST);
    for (at = 1; at < total;) {
        size_t room;
        uint8_t *to = inbox_room(&in, &room);

        room = MIN(room, (size_t)100000);
        memcpy(to, msg + at, room);
        assert_int_equal(inbox_feed(&in, to, room, &st), MST_OK);
        at += room;
        assert_true(in.buf->size <= 8 * MAX(at, INBOX_TRUST));
    }
    assert_int_equal(inbox_finish(&in, &got, &st), MST_OK);
    assert_int_equal(got.len, total);
    assert_memory_equal(got.data, msg, total);
    inbox_done(&in);
    mem_free(msg);
    mem_free(f);
}

/* Feeds all at once and finishes. */
static enum mst_code outcome(const uint8_t *f, size_t len, size_t max,
                             enum inflate_codec codec, struct status *st)
{
    struct rpc_data got;
    struct inbox in;
    enum mst_code code;

    inbox_init(&in, max);
    in.codec = codec;
    code = inbox_feed(&in, f, len, st);
    if (!code)
        code = inbox_finish(&in, &got, st);
    inbox_done(&in);
    return code;
}

static void test_inbox_wants_exactly_one_message(void **state)
{
    uint8_t *f = framed((const uint8_t *)"abcdef", 6, 0);
    uint8_t two[10] = { 0 };
    struct status st;

    assert_int_equal(outcome(f, 11, 6, 0, &st), MST_OK);
    assert_int_equal(outcome(f, 10, 6, 0, &st), MST_INTERNAL);
    assert_int_equal(outcome(f, 3, 6, 0, &st), MST_INTERNAL);
    assert_int_equal(outcome(f, 0, 6, 0, &st), MST_INTERNAL);
    assert_int_equal(outcome(two, 5, 6, 0, &st), MST_OK);
    assert_int_equal(outcome(two, 10, 6, 0, &st), MST_INTERNAL);
    assert_int_equal(outcome(f, 11, 5, 0, &st), MST_RESOURCE_EXHAUSTED);
    assert_string_equal(st.msg, "Received message larger than max (6 vs. 5)");
    f[0] = 2;
    assert_int_equal(outcome(f, 11, 6, 0, &st), MST_INTERNAL);
    mem_free(f);
}

static uint8_t *deflated(const uint8_t *data, size_t len, int window,
                         size_t *ret_len)
{
    size_t room = len + len / 100 + 1000;
    uint8_t *out = mem_new(room);
    z_stream z = { .next_in = (Bytef *)data,
                   .avail_in = (uInt)len,
                   .next_out = out,
                   .avail_out = (uInt)room };

    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, window, 8, 0), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    *ret_len = z.total_out;
    deflateEnd(&z);
    return out;
}

static void check_inflate(enum inflate_codec codec, int window, size_t len)
{
    uint8_t *msg = pattern(len);
    size_t packed_len;
    uint8_t *packed = deflated(msg, len, window, &packed_len);
    uint8_t *f = framed(packed, packed_len, 1);
    size_t f_len = INBOX_PREFIX + packed_len;
    struct rpc_data got;
    struct inbox in;
    struct status st;

    inbox_init(&in, MAX(len, packed_len));
    in.codec = codec;
    assert_int_equal(inbox_feed(&in, f, f_len, &st), MST_OK);
    assert_int_equal(inbox_finish(&in, &got, &st), MST_OK);
    assert_int_equal(got.len, len);
    assert_memory_equal(got.data, msg, len);
    inbox_done(&in);
    if (len > packed_len)
        assert_int_equal(outcome(f, f_len, len - 1, codec, &st),
                         MST_RESOURCE_EXHAUSTED);
    assert_int_equal(outcome(f, f_len, MAX_LEN, INFLATE_IDENTITY, &st),
                     MST_INTERNAL);
    assert_int_equal(outcome(f, f_len, MAX_LEN, INFLATE_UNKNOWN, &st),
                     MST_UNIMPLEMENTED);
    f[4]--;
    assert_int_equal(outcome(f, f_len - 1, MAX_LEN, codec, &st), MST_INTERNAL);
    mem_free(msg);
    mem_free(packed);
    mem_free(f);
}

static void test_inbox_inflates(void **state)
{
    check_inflate(INFLATE_GZIP, 15 + 16, 0);
    check_inflate(INFLATE_GZIP, 15 + 16, 1);
    check_inflate(INFLATE_GZIP, 15 + 16, 4096);
    check_inflate(INFLATE_GZIP, 15 + 16, 1000000);
    check_inflate(INFLATE_DEFLATE, 15, 5000);
}

/* The first, the second, the third buffer cannot be had. */
static void test_inbox_says_that_there_is_no_memory(void **state)
{
    static const size_t limits[] = { 1 << 10, 2 << 20, 12 << 20 };
    size_t total = (size_t)20 << 20, live, idle;
    uint8_t *f = framed(NULL, total, 0);

    for (size_t i = 0; i < COUNT(limits); i++) {
        struct status st = STATUS_INIT;

        buffer_trim(0);
        buffer_usage(&live, &idle);
        buffer_limit(live + limits[i]);
        assert_int_equal(outcome(f, INBOX_PREFIX + total, MAX_LEN, 0, &st),
                         MST_RESOURCE_EXHAUSTED);
        assert_string_equal(st.msg,
                            "no memory for a message of 20971520 bytes");
    }
    buffer_limit(0);
    mem_free(f);
}

static bool place_outside(void *arg, const uint8_t *head, size_t have,
                          size_t total, struct rpc_place *ret)
{
    static uint8_t dest[1];

    *ret = (struct rpc_place){ 3, dest, total - 2, NULL };
    return true;
}

static void test_inbox_refuses_a_place_outside(void **state)
{
    uint8_t *f = framed((const uint8_t *)"abcdef", 6, 0);
    struct inbox in;
    struct status st;

    inbox_init(&in, MAX_LEN);
    in.place = place_outside;
    assert_int_equal(inbox_feed(&in, f, 11, &st), MST_INTERNAL);
    inbox_done(&in);
    mem_free(f);
}

/* Messages of a stream, one behind the other. */
struct shown {
    size_t count;
    size_t lens[8];
};

static void show_message(const struct rpc_data *msg, void *arg)
{
    struct shown *s = arg;

    for (size_t i = 0; i < msg->len; i++)
        assert_int_equal(msg->data[i], (uint8_t)(i * 7 + (i >> 8)));
    s->lens[s->count++] = msg->len;
}

static void check_stream(uint64_t *seed, size_t cut)
{
    static const size_t lens[] = { 3, 0, 200000, 1, 0, 70000 };
    size_t total = 0, at = 0;
    struct shown shown = { 0 };
    struct rpc_data got;
    struct inbox in;
    struct status st;
    uint8_t *all;

    for (size_t i = 0; i < COUNT(lens); i++)
        total += INBOX_PREFIX + lens[i];
    all = mem_new(total);
    for (size_t i = 0; i < COUNT(lens); i++) {
        uint8_t *msg = pattern(lens[i]), *f = framed(msg, lens[i], 0);

        memcpy(all + at, f, INBOX_PREFIX + lens[i]);
        at += INBOX_PREFIX + lens[i];
        mem_free(msg);
        mem_free(f);
    }
    inbox_init(&in, MAX_LEN);
    in.each = show_message;
    in.each_arg = &shown;
    feed_random(&in, all, total - cut, seed);
    assert_int_equal(inbox_finish(&in, &got, &st), cut ? MST_INTERNAL : MST_OK);
    assert_int_equal(shown.count, COUNT(lens) - (cut ? 1 : 0));
    assert_memory_equal(shown.lens, lens, shown.count * sizeof(lens[0]));
    inbox_done(&in);
    mem_free(all);
}

static void test_inbox_shows_the_messages_of_a_stream(void **state)
{
    uint64_t seed = 12;

    for (int i = 0; i < 50; i++) {
        check_stream(&seed, 0);
        check_stream(&seed, 1 + rng_next(&seed) % 70000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inbox_places_whatever_is_asked_for),
        cmocka_unit_test(test_inbox_collects_large_messages_as_they_come),
        cmocka_unit_test(test_inbox_wants_exactly_one_message),
        cmocka_unit_test(test_inbox_inflates),
        cmocka_unit_test(test_inbox_says_that_there_is_no_memory),
        cmocka_unit_test(test_inbox_refuses_a_place_outside),
        cmocka_unit_test(test_inbox_shows_the_messages_of_a_stream),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
