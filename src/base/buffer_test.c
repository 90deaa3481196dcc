#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#include "base/buffer.h"
#include "base/mem.h"

static size_t live(void)
{
    size_t bytes, idle;

    buffer_usage(&bytes, &idle);
    return bytes;
}

static void test_buffer_is_aligned_and_counted(void **state)
{
    static const size_t sizes[] = { 0,     1,     256,     257,    65535,
                                    65536, 65537, 1000000, 5 << 20 };
    size_t before = live();

    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct buffer *b = buffer_new(sizes[i]);

        assert_non_null(b);
        assert_int_equal((uintptr_t)b->data % BUFFER_ALIGN, 0);
        assert_true(b->size == sizes[i] && b->room >= sizes[i]);
        assert_int_equal(live(), before + b->room);
        if (sizes[i])
            memset(b->data, 0xa5, sizes[i]);
        assert_true(buffer_unique(b));
        buffer_ref(b);
        assert_false(buffer_unique(b));
        buffer_unref(b);
        buffer_unref(b);
        assert_int_equal(live(), before);
    }
}

static void test_buffer_refuses_beyond_limit(void **state)
{
    (void)state;
    assert_null(buffer_new(SIZE_MAX));
    assert_null(buffer_new(SIZE_MAX - 4096));
    buffer_limit(live() + (1 << 20));
    assert_null(buffer_new(2 << 20));
    buffer_limit((size_t)1 << 40);
}

static void test_buffer_large_goes_back(void **state)
{
    struct buffer *b = buffer_new(3 << 20);
    size_t bytes, idle;

    (void)state;
    buffer_unref(b);
    buffer_trim(0);
    buffer_usage(&bytes, &idle);
    assert_int_equal(idle, 0);
}

static void test_mem_take_is_zeroed(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        uint8_t *p = mem_take(300);

        for (int k = 0; k < 300; k++)
            assert_int_equal(p[k], 0);
        memset(p, 0xff, 300);
        mem_give(p);
    }
    mem_give(NULL);
}

/* One thread makes buffers, another ends them. */
#define FLOW 4000

struct flow {
    struct buffer *pipe[FLOW];
    sem_t full, empty;
    int rounds;
};

static void *end_them(void *arg)
{
    struct flow *f = arg;

    for (int r = 0; r < f->rounds; r++) {
        sem_wait(&f->full);
        for (int i = 0; i < FLOW; i++) {
            assert_int_equal(f->pipe[i]->data[0], (uint8_t)i);
            buffer_unref(f->pipe[i]);
        }
        sem_post(&f->empty);
    }
    return NULL;
}

static void test_buffer_flows_between_threads(void **state)
{
    static struct flow f = { .rounds = 5 };
    size_t before = live();
    pthread_t other;

    (void)state;
    sem_init(&f.full, 0, 0);
    sem_init(&f.empty, 0, 0);
    assert_int_equal(pthread_create(&other, NULL, end_them, &f), 0);
    for (int r = 0; r < f.rounds; r++) {
        for (int i = 0; i < FLOW; i++) {
            f.pipe[i] = buffer_new((size_t)(i % 3000) + 1);
            f.pipe[i]->data[0] = (uint8_t)i;
        }
        sem_post(&f.full);
        sem_wait(&f.empty);
    }
    pthread_join(other, NULL);
    assert_int_equal(live(), before);
    sem_destroy(&f.full);
    sem_destroy(&f.empty);
}

/* Threads that come and go, all at once, with buffers of each other's. */
static struct buffer *_Atomic desk[64];

static void *swap_them(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg * 2654435761u + 1;

    for (int i = 0; i < 20000; i++) {
        struct buffer *b;

        seed = seed * 1664525 + 1013904223;
        b = buffer_new((seed >> 18) + 1);
        memset(b->data, 0x5a, 1);
        buffer_unref(atomic_exchange(&desk[seed >> 8 & 63], b));
    }
    return NULL;
}

static void test_buffer_survives_its_thread(void **state)
{
    size_t before = live();

    (void)state;
    for (int round = 0; round < 3; round++) {
        pthread_t t[4];

        for (uintptr_t i = 0; i < 4; i++)
            assert_int_equal(pthread_create(&t[i], NULL, swap_them, (void *)i),
                             0);
        for (int i = 0; i < 4; i++)
            pthread_join(t[i], NULL);
    }
    for (int i = 0; i < 64; i++)
        buffer_unref(atomic_exchange(&desk[i], NULL));
    assert_int_equal(live(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buffer_is_aligned_and_counted),
        cmocka_unit_test(test_buffer_refuses_beyond_limit),
        cmocka_unit_test(test_buffer_large_goes_back),
        cmocka_unit_test(test_mem_take_is_zeroed),
        cmocka_unit_test(test_buffer_flows_between_threads),
        cmocka_unit_test(test_buffer_survives_its_thread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
