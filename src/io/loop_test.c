#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "io/loop.h"

static struct loop_group *group;
static struct loop *loop;

static int setup(void **state)
{
    struct loop_opts opts = { .loops = 2 };

    group = loop_group_new(&opts);
    loop = loop_group_at(group, 0);
    return 0;
}

static int teardown(void **state)
{
    loop_group_free(group);
    return 0;
}

/* Runs fn on the loop thread and waits until it has. */
struct errand {
    struct loop_task task;
    void (*fn)(void *);
    void *arg;
    sem_t over;
};

static void errand_run(struct loop_task *task)
{
    struct errand *e = CONTAINER(task, struct errand, task);

    e->fn(e->arg);
    sem_post(&e->over);
}

static void on_loop(void (*fn)(void *), void *arg)
{
    struct errand e = { .task.run = errand_run, .fn = fn, .arg = arg };

    sem_init(&e.over, 0, 0);
    loop_post(loop, &e.task);
    sem_wait(&e.over);
    sem_destroy(&e.over);
}

#define POSTERS 4
#define POSTS   5000

static struct post {
    struct loop_task task;
    int poster, number;
} posts[POSTERS][POSTS];
static int seen[POSTERS];
static int out_of_order, ran;
static sem_t all_ran;

static void post_run(struct loop_task *task)
{
    struct post *p = CONTAINER(task, struct post, task);

    out_of_order += p->number != seen[p->poster]++ || !loop_inside(loop);
    if (++ran == POSTERS * POSTS)
        sem_post(&all_ran);
}

static void *poster_main(void *arg)
{
    int me = (int)(intptr_t)arg;

    for (int i = 0; i < POSTS; i++) {
        posts[me][i] = (struct post){ { NULL, post_run }, me, i };
        loop_post(loop, &posts[me][i].task);
    }
    return NULL;
}

static void test_loop_runs_posts_of_all_threads_in_order(void **state)
{
    pthread_t threads[POSTERS];

    sem_init(&all_ran, 0, 0);
    for (int i = 0; i < POSTERS; i++)
        pthread_create(&threads[i], NULL, poster_main, (void *)(intptr_t)i);
    sem_wait(&all_ran);
    for (int i = 0; i < POSTERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(out_of_order, 0);
    assert_false(loop_inside(loop));
    sem_destroy(&all_ran);
}

static struct loop_timer timers[3];
static int fired[3], fired_count;
static sem_t timers_over;

static void timer_fire(struct loop_timer *t)
{
    assert_true(loop_now_ns(loop) >= t->when_ns);
    fired[fired_count++] = (int)(t - timers);
    sem_post(&timers_over);
}

static void timers_set(void *arg)
{
    uint64_t now = loop_now_ns(loop);

    for (int i = 0; i < 3; i++) {
        timers[i].fire = timer_fire;
        loop_timer_set(loop, &timers[i], now + (uint64_t)(3 - i) * 3000000);
    }
    loop_timer_del(loop, &timers[1]);
}

static void test_loop_fires_timers_in_order(void **state)
{
    sem_init(&timers_over, 0, 0);
    on_loop(timers_set, NULL);
    sem_wait(&timers_over);
    sem_wait(&timers_over);
    assert_int_equal(fired_count, 2);
    assert_int_equal(fired[0], 2);
    assert_int_equal(fired[1], 0);
    sem_destroy(&timers_over);
}

/* A hook that comes back for three turns, and one that is taken away. */
static struct loop_hook again, never;
static int turns;
static sem_t hooks_over;

static void hook_again(struct loop_hook *hook)
{
    loop_hook_del(&never);
    if (++turns < 3)
        loop_hook_add(loop, hook);
    else
        sem_post(&hooks_over);
}

static void hook_never(struct loop_hook *hook)
{
    fail();
}

static void hooks_add(void *arg)
{
    again.run = hook_again;
    never.run = hook_never;
    loop_hook_add(loop, &again);
    loop_hook_add(loop, &again);
    loop_hook_add(loop, &never);
    assert_int_equal(turns, 0);
}

static void test_loop_runs_hooks_at_the_end_of_turns(void **state)
{
    sem_init(&hooks_over, 0, 0);
    on_loop(hooks_add, NULL);
    sem_wait(&hooks_over);
    assert_int_equal(turns, 3);
    sem_destroy(&hooks_over);
}

/* Two pipes ready in one turn: whoever comes first takes the other away. */
static struct loop_watch watches[2];
static int pipes[2][2];
static int ready_count;
static sem_t ready_over;

static void watch_ready(struct loop_watch *watch, uint32_t events)
{
    assert_true(events & EPOLLIN);
    ready_count++;
    loop_watch_del(loop, &watches[0]);
    loop_watch_del(loop, &watches[1]);
    sem_post(&ready_over);
}

static void watches_add(void *arg)
{
    struct status st;

    for (int i = 0; i < 2; i++) {
        watches[i] = (struct loop_watch){ pipes[i][0], watch_ready };
        assert_int_equal(loop_watch_add(loop, &watches[i], EPOLLIN, &st), 0);
        assert_int_equal(write(pipes[i][1], "x", 1), 1);
    }
}

static void nothing(void *arg)
{
}

static void test_loop_forgets_a_deleted_watch_at_once(void **state)
{
    sem_init(&ready_over, 0, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pipe(pipes[i]), 0);
    on_loop(watches_add, NULL);
    sem_wait(&ready_over);
    on_loop(nothing, NULL);
    assert_int_equal(ready_count, 1);
    for (int i = 0; i < 2; i++) {
        close(pipes[i][0]);
        close(pipes[i][1]);
    }
    sem_destroy(&ready_over);
}

static void test_loop_group_takes_turns(void **state)
{
    struct loop *first = loop_group_next(group);
    struct loop *second = loop_group_next(group);

    assert_int_equal(loop_group_size(group), 2);
    assert_ptr_not_equal(first, second);
    assert_ptr_equal(first, loop_group_next(group));
}

static void count_one(void *arg)
{
    ++*(int *)arg;
}

/* The errand is run by whoever runs the loop. */
static void *post_one(void *arg)
{
    on_loop(count_one, arg);
    return NULL;
}

static void test_guest_runs_the_loop(void **state)
{
    pthread_t other;
    int ran = 0;

    assert_true(loop_enter(loop));
    assert_true(loop_inside(loop));
    assert_int_equal(pthread_create(&other, NULL, post_one, &ran), 0);
    while (!ran)
        loop_turn(loop, 0);
    loop_leave(loop);
    assert_false(loop_inside(loop));
    pthread_join(other, NULL);
    assert_int_equal(ran, 1);
}

static void test_loop_goes_on_when_the_guest_is_gone(void **state)
{
    int ran = 0;

    for (int i = 0; i < 100; i++) {
        assert_true(loop_enter(loop));
        loop_turn(loop, clock_ns());
        loop_leave(loop);
    }
    on_loop(count_one, &ran); /* nobody else would run it */
    assert_int_equal(ran, 1);
}

static void *nudge(void *arg)
{
    loop_nudge(loop);
    return NULL;
}

static void test_guest_is_nudged_and_has_a_deadline(void **state)
{
    uint64_t begin = clock_ns();
    pthread_t other;

    assert_true(loop_enter(loop));
    while (clock_ns() < begin + 3000000)
        loop_turn(loop, begin + 3000000);
    assert_int_equal(pthread_create(&other, NULL, nudge, NULL), 0);
    loop_turn(loop, 0);
    loop_leave(loop);
    pthread_join(other, NULL);
}

static void *enter_late(void *arg)
{
    assert_true(loop_enter(loop));
    loop_turn(loop, clock_ns());
    loop_leave(loop);
    return NULL;
}

static void test_last_guest_gets_the_loop(void **state)
{
    pthread_t other;
    int ran = 0;

    assert_true(loop_enter(loop));
    assert_false(loop_enter(loop)); /* it cannot wait for itself */
    assert_int_equal(pthread_create(&other, NULL, enter_late, NULL), 0);
    while (loop_turn(loop, 0))
        ;
    loop_leave(loop);
    pthread_join(other, NULL);
    on_loop(count_one, &ran);
    assert_int_equal(ran, 1);
}

#define GUEST_ROUNDS 3000

static atomic_bool guests_end;

static void *visit(void *arg)
{
    while (!atomic_load(&guests_end))
        if (loop_enter(loop)) {
            loop_turn(loop, clock_ns() + 1000000);
            loop_leave(loop);
        }
    return NULL;
}

static void test_nothing_is_lost_while_guests_come_and_go(void **state)
{
    pthread_t guests[2];
    int ran = 0;

    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&guests[i], NULL, visit, NULL), 0);
    for (int i = 0; i < GUEST_ROUNDS; i++)
        on_loop(count_one, &ran);
    atomic_store(&guests_end, true);
    for (int i = 0; i < 2; i++)
        pthread_join(guests[i], NULL);
    assert_int_equal(ran, GUEST_ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loop_runs_posts_of_all_threads_in_order),
        cmocka_unit_test(test_loop_fires_timers_in_order),
        cmocka_unit_test(test_loop_runs_hooks_at_the_end_of_turns),
        cmocka_unit_test(test_loop_forgets_a_deleted_watch_at_once),
        cmocka_unit_test(test_loop_group_takes_turns),
        cmocka_unit_test(test_guest_runs_the_loop),
        cmocka_unit_test(test_loop_goes_on_when_the_guest_is_gone),
        cmocka_unit_test(test_guest_is_nudged_and_has_a_deadline),
        cmocka_unit_test(test_nothing_is_lost_while_guests_come_and_go),
        cmocka_unit_test(test_last_guest_gets_the_loop),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
