/* Golden values are TensorFlow's, printed by its CPU kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "op/harness.h"

#define SEED  87654321
#define SEED2 42

static void start(struct harness *h, const char *op, int dt)
{
    harness_init(h, op);
    harness_type(h, "dtype", dt);
    harness_type(h, "T", DT_INT32);
    harness_int(h, "seed", SEED);
    harness_int(h, "seed2", SEED2);
}

static void run(struct harness *h, int32_t n)
{
    harness_in(h, harness_int32s(1, (int64_t[]){ 1 }, &n));
    assert_int_equal(harness_run(h), MST_OK);
    assert_int_equal(h->out[0].t.count, n);
}

static void test_streams_are_tensorflows_and_go_on(void **state)
{
    static const struct {
        const char *op;
        uint32_t first[6], second[6];
    } golden[] = {
        { "RandomUniform",
          { 0x3f73c810, 0x3f2d6a98, 0x3f4b99fa, 0x3f417aea, 0x3ef3b074,
            0x3f218a30 },
          { 0x3e1acc18, 0x3f7fb24a, 0x3edc8684, 0x3f6ccc32, 0x3ed5de0c,
            0x3f72ac66 } },
        { "RandomStandardNormal",
          { 0xbe8fc1c0, 0xbe0d0ee3, 0xbf2d23f0, 0x3cc95cdd, 0xbf64c1f5,
            0xbf5416d3 },
          { 0xbc6d489a, 0x3ff8cfa5, 0xbf16dd5e, 0x3f9405e6, 0xbed95b16,
            0x3fa02a26 } },
        { "TruncatedNormal",
          { 0xbe8fc1c0, 0xbe0d0ee3, 0xbf2d23f0, 0x3cc95cdd, 0xbeefd94c,
            0xbb21a1f5 },
          { 0xbc6d489a, 0x3ff8cfa5, 0xbf16dd5e, 0x3f9405e6, 0x3f86d19d,
            0x3f06872a } },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(golden); i++) {
        struct harness h;

        start(&h, golden[i].op, DT_FLOAT);
        run(&h, 6);
        assert_memory_equal(h.out[0].t.data, golden[i].first, 24);
        run(&h, 6);
        assert_memory_equal(h.out[0].t.data, golden[i].second, 24);
        harness_done(&h);
    }
}

static void test_threads_do_not_change_values(void **state)
{
    struct pool *pool = pool_new(3);
    struct harness alone, split;

    (void)state;
    start(&alone, "TruncatedNormal", DT_DOUBLE);
    start(&split, "TruncatedNormal", DT_DOUBLE);
    split.env.pool = pool;
    run(&alone, 100001);
    run(&split, 100001);
    assert_memory_equal(alone.out[0].t.data, split.out[0].t.data, 800008);
    harness_done(&alone);
    harness_done(&split);
    pool_free(pool);
}

static void test_nodes_of_a_session_share_a_stream_by_name(void **state)
{
    struct resources *segment = resources_new("session");
    struct harness whole, first, second;

    (void)state;
    start(&whole, "RandomUniform", DT_FLOAT);
    start(&first, "RandomUniform", DT_FLOAT);
    start(&second, "RandomUniform", DT_FLOAT);
    first.env.segment = second.env.segment = segment;
    run(&whole, 4);
    run(&first, 4);
    assert_memory_equal(whole.out[0].t.data, first.out[0].t.data, 16);
    run(&whole, 4);
    run(&second, 4);
    assert_memory_equal(whole.out[0].t.data, second.out[0].t.data, 16);
    harness_done(&whole);
    harness_done(&first);
    harness_done(&second);
    resources_unref(segment);
}

static void test_no_seed_is_a_new_stream_each_time(void **state)
{
    struct harness a, b;

    (void)state;
    harness_init(&a, "RandomUniform");
    harness_init(&b, "RandomUniform");
    harness_type(&a, "dtype", DT_DOUBLE);
    harness_type(&b, "dtype", DT_DOUBLE);
    harness_type(&a, "T", DT_INT32);
    harness_type(&b, "T", DT_INT32);
    run(&a, 2);
    run(&b, 2);
    assert_memory_not_equal(a.out[0].t.data, b.out[0].t.data, 16);
    harness_done(&a);
    harness_done(&b);
}

static void test_bad_shapes_are_refused(void **state)
{
    static const int64_t bad[][2] = { { -1, 2 },
                                      { (int64_t)1 << 40, (int64_t)1 << 40 } };
    static const char *const texts[] = {
        "Dimension -1 must be >= 0",
        "Shape [1099511627776,1099511627776] would have more than 2**63 - 1 "
        "elements",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct harness h;

        harness_init(&h, "RandomUniform");
        harness_type(&h, "dtype", DT_FLOAT);
        harness_type(&h, "T", DT_INT64);
        harness_in(&h, harness_int64s(1, (int64_t[]){ 2 }, bad[i]));
        assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
        assert_string_equal(h.st.msg, texts[i]);
        harness_done(&h);
    }
}

static void test_stateless_int_is_tensorflows(void **state)
{
    static const int64_t golden[] = { 146205965634, 637742050818, 317990157307,
                                      515981758563, 327577181373 };
    struct harness h;

    (void)state;
    harness_init(&h, "StatelessRandomUniformInt");
    harness_type(&h, "dtype", DT_INT64);
    harness_type(&h, "T", DT_INT32);
    harness_type(&h, "Tseed", DT_INT32);
    harness_in(&h, harness_int32s(1, (int64_t[]){ 1 }, (int32_t[]){ 5 }));
    harness_in(&h, harness_int32s(1, (int64_t[]){ 2 }, (int32_t[]){ 1, 2 }));
    harness_in(&h, harness_int64s(0, NULL, (int64_t[]){ -10 }));
    harness_in(&h, harness_int64s(0, NULL, (int64_t[]){ 1000000000000 }));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_memory_equal(h.out[0].t.data, golden, sizeof(golden));
    harness_done(&h);
}

static void test_shuffle_is_tensorflows(void **state)
{
    static const int32_t golden[] = { 9, 0, 8, 6, 1, 3, 7, 2, 4, 5 };
    int32_t in[10];
    struct harness h;

    (void)state;
    for (int i = 0; i < 10; i++)
        in[i] = i;
    harness_init(&h, "RandomShuffle");
    harness_type(&h, "T", DT_INT32);
    harness_int(&h, "seed", 1);
    harness_int(&h, "seed2", 2);
    harness_in(&h, harness_int32s(1, (int64_t[]){ 10 }, in));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_memory_equal(h.out[0].t.data, golden, sizeof(golden));
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams_are_tensorflows_and_go_on),
        cmocka_unit_test(test_threads_do_not_change_values),
        cmocka_unit_test(test_nodes_of_a_session_share_a_stream_by_name),
        cmocka_unit_test(test_no_seed_is_a_new_stream_each_time),
        cmocka_unit_test(test_bad_shapes_are_refused),
        cmocka_unit_test(test_stateless_int_is_tensorflows),
        cmocka_unit_test(test_shuffle_is_tensorflows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
