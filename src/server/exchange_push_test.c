/* What a master's task passes on between two others: nothing before both have
 * been told of the step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "server/exchange.h"
#include "server/push.h"
#include "server/quick.h"

#define MASTER "/job:worker/replica:0/task:0"
#define PS0    "/job:ps/replica:0/task:0"
#define PS1    "/job:ps/replica:0/task:1"
#define CPU    "/device:CPU:0"
#define STEP   7

static struct loop_group *group;

static int setup(void **state)
{
    group = loop_group_new(NULL);
    return 0;
}

static int teardown(void **state)
{
    loop_group_free(group);
    return 0;
}

/* The lane to a task, and what came there: one letter a frame. */
struct task {
    struct lane *lane, *there;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char came[16];
    int count, lost;
    float value;
};

static void on_frame(struct lane *lane, struct lane_frame *f, void *arg)
{
    struct task *t = arg;
    struct push p = { 0 };

    pthread_mutex_lock(&t->lock);
    t->came[t->count++] = f->kind == QUICK_RUN    ? 'r'
                          : f->kind == QUICK_PULL ? 'l'
                                                  : 'p';
    if (f->kind == QUICK_PUSH && push_read(f, &p)) {
        t->value = tensor_set(&p.value) ? *(float *)p.value.data : -1;
        tensor_unref(&p.value);
    }
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

static void on_lost(struct lane *lane, const char *why, void *arg)
{
    struct task *t = arg;

    pthread_mutex_lock(&t->lock);
    t->lost++;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

static const struct lane_ops ops = { on_frame, on_lost };

static void task_open(struct task *t)
{
    struct lane_opts opts = {
        .loop = loop_group_next(group), .opens = true, .ops = &ops, .arg = t
    };
    int fd[2];

    *t = (struct task){ 0 };
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    assert_false(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd));
    memcpy(opts.preface, LANE_MAGIC "abcdefghijklmnop", LANE_PREFACE);
    opts.fd = fd[0];
    t->lane = lane_new(&opts);
    opts.fd = fd[1];
    opts.opens = false;
    t->there = lane_new(&opts);
    assert_non_null(t->lane);
    assert_non_null(t->there);
}

static void task_wait(struct task *t, int count)
{
    pthread_mutex_lock(&t->lock);
    while (t->count < count)
        pthread_cond_wait(&t->changed, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

static void task_close(struct task *t)
{
    lane_shut(t->lane, "over");
    pthread_mutex_lock(&t->lock);
    while (t->lost < 2)
        pthread_cond_wait(&t->changed, &t->lock);
    pthread_mutex_unlock(&t->lock);
    lane_unref(t->lane);
    lane_unref(t->there);
}

static void told(struct task *t)
{
    lane_send(t->lane, &(struct lane_out){ .kind = QUICK_RUN });
    lane_flush(t->lane);
}

static struct rdv_key key_of(const char *text)
{
    struct rdv_key k;

    assert_true(rdv_key_parse(text, strlen(text), &k));
    return k;
}

static void pushed(struct exchange *x, const char *text, float value)
{
    struct rdv_key k = key_of(text);
    struct tensor t;
    struct status st;

    assert_int_equal(tensor_new(&t, DT_FLOAT, 0, NULL, &st), MST_OK);
    *(float *)t.data = value;
    exchange_pushed(x, &k, &t, false);
}

static void test_relay_waits_for_all(void **state)
{
    struct exchange *x = exchange_new(STEP, NULL, NULL, NULL);
    struct rdv_key late = key_of(PS0 CPU ";0000000000000001;" PS1 CPU ";v;0:0");
    struct status st = STATUS_INIT;
    struct task ps0, ps1;

    task_open(&ps0);
    task_open(&ps1);
    assert_int_equal(exchange_bind(x, MASTER, NULL, NULL, &st), MST_OK);
    exchange_push(x, PS0, ps0.lane);
    exchange_push(x, PS1, ps1.lane);
    exchange_relay_hold(x);
    pushed(x, PS0 CPU ";0000000000000001;" PS1 CPU ";a;0:0", 1.5f);
    exchange_pull(x, &late, ps1.lane);
    told(&ps0);
    told(&ps1);
    exchange_relay_go(x);
    task_wait(&ps0, 2);
    task_wait(&ps1, 2);
    assert_string_equal(ps0.came, "rl");
    assert_string_equal(ps1.came, "rp");
    assert_true(ps1.value == 1.5f);

    /* From then on at once. One for nobody of the step is dropped. */
    pushed(x, PS1 CPU ";0000000000000001;" PS0 CPU ";b;0:0", 2.5f);
    pushed(x, PS1 CPU ";0000000000000001;/job:ps/replica:0/task:2" CPU ";c;0:0",
           3.5f);
    task_wait(&ps0, 3);
    assert_string_equal(ps0.came, "rlp");
    assert_true(ps0.value == 2.5f);
    exchange_unref(x);
    task_close(&ps0);
    task_close(&ps1);
}

/* A task that relays by a lane sends all that is not its own that way. */
static void test_relay_by(void **state)
{
    struct exchange *x = exchange_new(STEP, NULL, NULL, NULL);
    struct rendezvous *r = exchange_rendezvous(x);
    struct rdv_key to_ps1 =
                       key_of(PS0 CPU ";0000000000000001;" PS1 CPU ";a;0:0"),
                   to_self =
                       key_of(PS0 CPU ";0000000000000001;" PS0 CPU ";b;0:0");
    struct status st = STATUS_INIT;
    struct tensor t;
    struct task master;

    task_open(&master);
    assert_int_equal(exchange_bind(x, PS0, NULL, NULL, &st), MST_OK);
    exchange_push(x, MASTER, master.lane);
    exchange_relay_by(x, master.lane);
    assert_int_equal(tensor_new(&t, DT_FLOAT, 0, NULL, &st), MST_OK);
    *(float *)t.data = 4;
    assert_int_equal(r->ops->send(r, &to_self, &t, false, &st), MST_OK);
    assert_int_equal(tensor_new(&t, DT_FLOAT, 0, NULL, &st), MST_OK);
    *(float *)t.data = 5;
    assert_int_equal(r->ops->send(r, &to_ps1, &t, false, &st), MST_OK);
    r->ops->flush(r);
    task_wait(&master, 1);
    assert_string_equal(master.came, "p");
    assert_true(master.value == 5);
    exchange_unref(x);
    task_close(&master);
}

static void remember(struct rdv_recv *r, enum mst_code code)
{
    *(enum mst_code *)r->impl = code;
}

/* It is passed on as such, and fails the receives of the step that it is for.
 */
static void test_a_value_that_could_not_be_read(void **state)
{
    struct exchange *x = exchange_new(STEP, NULL, NULL, NULL);
    struct rendezvous *r = exchange_rendezvous(x);
    struct rdv_key there =
                       key_of(PS0 CPU ";0000000000000001;" PS1 CPU ";a;0:0"),
                   here =
                       key_of(PS0 CPU ";0000000000000001;" MASTER CPU ";b;0:0");
    struct status st = STATUS_INIT, why = STATUS_INIT;
    enum mst_code first = MST_OK, second = MST_OK;
    struct rdv_recv recv = { .done = remember, .st = &why, .impl = &first },
                    later = { .done = remember, .st = &why, .impl = &second };
    struct tensor none = { 0 };
    struct task ps0, ps1;

    task_open(&ps0);
    task_open(&ps1);
    assert_int_equal(exchange_bind(x, MASTER, NULL, NULL, &st), MST_OK);
    exchange_push(x, PS0, ps0.lane);
    exchange_push(x, PS1, ps1.lane);
    exchange_pushed(x, &there, &none, false);
    task_wait(&ps1, 1);
    assert_string_equal(ps1.came, "p");
    assert_true(ps1.value == -1);

    r->ops->recv(r, &here, &recv);
    assert_int_equal(first, MST_OK);
    exchange_pushed(x, &here, &none, false);
    assert_int_equal(first, MST_INTERNAL);
    assert_string_equal(why.msg, "could not parse rpc response");
    r->ops->recv(r, &here, &later);
    assert_int_equal(second, MST_INTERNAL);
    exchange_unref(x);
    task_close(&ps0);
    task_close(&ps1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relay_waits_for_all),
        cmocka_unit_test(test_relay_by),
        cmocka_unit_test(test_a_value_that_could_not_be_read),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
