#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "base/pool.h"

struct sum {
    struct pool *pool;
    atomic_int seen[1000];
};

static void see(void *arg, int64_t begin, int64_t end)
{
    struct sum *s = arg;

    for (int64_t i = begin; i < end; i++)
        atomic_fetch_add(&s->seen[i], 1);
}

static void test_pool_for_covers_each_once(void **state)
{
    static const int64_t grains[] = { 1, 7, 400, 1000, 5000 };
    struct pool *pool = pool_new(3);

    (void)state;
    for (int round = 0; round < 50; round++) {
        struct sum s = { 0 };

        pool_for(pool, 1000, grains[round % 5], see, &s);
        for (int i = 0; i < 1000; i++)
            assert_int_equal(s.seen[i], 1);
    }
    pool_for(pool, 0, 1, see, NULL);
    pool_free(pool);
}

static void see_within(void *arg, int64_t begin, int64_t end)
{
    struct sum *s = arg;

    for (int64_t i = begin; i < end; i++)
        pool_for(s->pool, 1000, 10, see, s);
}

static void test_pool_for_works_within_itself(void **state)
{
    struct sum s = { .pool = pool_new(2) };

    (void)state;
    pool_for(s.pool, 8, 1, see_within, &s);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(s.seen[i], 8);
    pool_free(s.pool);
}

/* A loop whose first helper posts a job, and whose caller waits for it. */
struct polite {
    struct pool_job job;
    struct pool *pool;
    pthread_t caller;
    atomic_int begun;
    atomic_int begun_before_job;
    atomic_bool posted;
    sem_t ran;
};

static void polite_job(struct pool_job *job)
{
    struct polite *p = (struct polite *)job;

    p->begun_before_job = p->begun;
    sem_post(&p->ran);
}

static void polite_piece(void *arg, int64_t begin, int64_t end)
{
    struct polite *p = arg;

    (void)begin;
    (void)end;
    atomic_fetch_add(&p->begun, 1);
    if (pthread_equal(pthread_self(), p->caller)) {
        if (p->begun_before_job == 0)
            sem_wait(&p->ran);
    } else if (!atomic_exchange(&p->posted, true)) {
        p->job.run = polite_job;
        pool_post(p->pool, &p->job);
    }
}

static void test_pool_helpers_leave_loop_for_job(void **state)
{
    struct polite p = { .pool = pool_new(1), .caller = pthread_self() };

    (void)state;
    sem_init(&p.ran, 0, 0);
    pool_for(p.pool, 6, 1, polite_piece, &p);
    assert_int_equal(p.begun, 6);
    /* The caller's and the helper's first. */
    assert_in_range(p.begun_before_job, 1, 2);
    sem_destroy(&p.ran);
    pool_free(p.pool);
}

struct count {
    struct pool_job job;
    atomic_int *ran;
};

static void count_job(struct pool_job *job)
{
    atomic_fetch_add(((struct count *)job)->ran, 1);
}

static void test_pool_free_finishes_what_was_posted(void **state)
{
    static struct count jobs[500];
    struct pool *pool = pool_new(2);
    atomic_int ran = 0;

    (void)state;
    for (int i = 0; i < 500; i++) {
        jobs[i] = (struct count){ .job.run = count_job, .ran = &ran };
        pool_post(pool, &jobs[i].job);
    }
    pool_free(pool);
    assert_int_equal(ran, 500);
}

struct again {
    struct pool_job job;
    struct pool *pool;
    sem_t *ran;
};

static void again_job(struct pool_job *job)
{
    struct again *a = CONTAINER(job, struct again, job);

    sem_post(a->ran);
    if (!pool_stopping(a->pool))
        pool_post(a->pool, job);
}

static void test_pool_that_stops_says_so(void **state)
{
    struct again a = { .job.run = again_job, .pool = pool_new(2) };
    sem_t ran;

    (void)state;
    sem_init(&ran, 0, 0);
    a.ran = &ran;
    pool_post(a.pool, &a.job);
    for (int i = 0; i < 3; i++)
        sem_wait(&ran);
    pool_free(a.pool);
    sem_destroy(&ran);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool_for_covers_each_once),
        cmocka_unit_test(test_pool_for_works_within_itself),
        cmocka_unit_test(test_pool_helpers_leave_loop_for_job),
        cmocka_unit_test(test_pool_free_finishes_what_was_posted),
        cmocka_unit_test(test_pool_that_stops_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
