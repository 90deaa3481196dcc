#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <semaphore.h>

#include "base/hash.h"
#include "exec/step.h"
#include "graph/testing.h"
#include "op/rendezvous.h"

/*
 * A rendezvous that keeps what is sent under its key, for one step; a receive
 * finds it or fails.
 */
struct box {
    struct rendezvous base;
    struct {
        char key[256];
        struct tensor value;
        bool dead;
    } item[32];
    int count;
};

static enum mst_code box_send(struct rendezvous *r, const struct rdv_key *key,
                              struct tensor *value, bool dead,
                              struct status *st)
{
    struct box *b = CONTAINER(r, struct box, base);

    (void)st;
    assert_true(b->count < (int)COUNT(b->item) && key->len < 256);
    memcpy(b->item[b->count].key, key->text, key->len);
    tensor_move(&b->item[b->count].value, value);
    b->item[b->count++].dead = dead;
    return MST_OK;
}

static void box_recv(struct rendezvous *r, const struct rdv_key *key,
                     struct rdv_recv *recv)
{
    struct box *b = CONTAINER(r, struct box, base);

    for (int i = 0; i < b->count; i++)
        if (!strncmp(b->item[i].key, key->text, key->len)) {
            recv->value = tensor_ref(&b->item[i].value);
            recv->dead = b->item[i].dead;
            recv->done(recv, MST_OK);
            return;
        }
    recv->done(recv, status_set(recv->st, MST_NOT_FOUND, "%s is not there",
                                key->text));
}

static const struct rendezvous_ops box_ops = { box_send, box_recv, NULL };

/* One plan, one step of it, and what came of it. */
struct fixture {
    struct plan *plan;
    struct op_env env;
    struct cancel cancel;
    struct box box;
    struct status st;
    int done;
};

static void on_done(void *arg, struct step *s, const struct status *st)
{
    struct fixture *f = arg;

    (void)s;
    status_copy(&f->st, st);
    f->done++;
}

static enum mst_code make(struct fixture *f, struct graph_text *g)
{
    struct graph_library *lib;

    memset(f, 0, sizeof(*f));
    cancel_init(&f->cancel);
    f->box.base.ops = &box_ops;
    f->env.resources = resources_new("localhost");
    f->env.device = "/job:localhost/replica:0/task:0/device:CPU:0";
    lib = graph_text_library(g, &f->st);
    if (!lib)
        return f->st.code;
    return plan_new(lib, &f->env, false, &f->plan, &f->st);
}

static enum mst_code run(struct fixture *f)
{
    struct step_opts opts = {
        .env = { .id = 1, .cancel = &f->cancel, .rendezvous = &f->box.base },
        .done = on_done,
        .arg = f
    };

    status_clear(&f->st);
    f->done = 0;
    step_run(step_new(f->plan, &opts));
    assert_int_equal(f->done, 1);
    return f->st.code;
}

static void empty_box(struct fixture *f)
{
    for (int i = 0; i < f->box.count; i++)
        tensor_unref(&f->box.item[i].value);
    memset(f->box.item, 0, sizeof(f->box.item));
    f->box.count = 0;
}

static void end(struct fixture *f)
{
    empty_box(f);
    plan_unref(f->plan);
    resources_unref(f->env.resources);
    cancel_done(&f->cancel);
}

static void put_send(struct graph_text *g, const char *name, const char *input,
                     enum dtype dt)
{
    graph_text_node(g, name, "_Send", input);
    graph_text_type(g, "T", dt);
    graph_text_str(g, "tensor_name", name);
    graph_text_str(g, "send_device", g->device);
    graph_text_str(g, "recv_device", g->device);
    graph_text_int(g, "send_device_incarnation", 1);
}

static void test_step_sends_value(void **state)
{
    struct fixture f;
    struct graph_text g;
    float two = 2;

    (void)state;
    graph_text_init(&g);
    put_send(&g, "s", "n", DT_FLOAT); /* inputs may come later in the list */
    graph_text_node(&g, "n", "Neg", "c");
    graph_text_type(&g, "T", DT_FLOAT);
    graph_text_const(&g, "c", DT_FLOAT, &two);
    assert_int_equal(make(&f, &g), MST_OK);
    for (int i = 0; i < 3; i++) { /* the same step's memory again */
        assert_int_equal(run(&f), MST_OK);
        assert_int_equal(f.box.count, 1);
        assert_string_equal(f.box.item[0].key,
                            "/job:localhost/replica:0/task:0/device:CPU:0;"
                            "0000000000000001;"
                            "/job:localhost/replica:0/task:0/device:CPU:0;"
                            "s;0:0");
        assert_float_equal(*TENSOR_DATA(&f.box.item[0].value, float), -2, 0);
        empty_box(&f);
    }
    end(&f);
}

/* Switch sends its data one way; what is on the other way is dead. */
static void test_step_switch_kills_other_branch(void **state)
{
    struct fixture f;
    struct graph_text g;
    float two = 2;
    bool yes = true;

    (void)state;
    graph_text_init(&g);
    graph_text_const(&g, "c", DT_FLOAT, &two);
    graph_text_const(&g, "p", DT_BOOL, &yes);
    graph_text_node(&g, "w", "Switch", "c,p");
    graph_text_type(&g, "T", DT_FLOAT);
    graph_text_node(&g, "f", "Neg", "w:0");
    graph_text_type(&g, "T", DT_FLOAT);
    graph_text_node(&g, "t", "Identity", "w:1");
    graph_text_type(&g, "T", DT_FLOAT);
    graph_text_node(&g, "m", "Merge", "f,t");
    graph_text_type(&g, "T", DT_FLOAT);
    graph_text_int(&g, "N", 2);
    put_send(&g, "merged", "m", DT_FLOAT);
    put_send(&g, "index", "m:1", DT_INT32);
    put_send(&g, "dead", "f", DT_FLOAT);
    assert_int_equal(make(&f, &g), MST_OK);
    assert_int_equal(run(&f), MST_OK);
    assert_int_equal(f.box.count, 3);
    for (int i = 0; i < 3; i++) {
        const char *key = f.box.item[i].key;

        if (strstr(key, ";merged;"))
            assert_float_equal(*TENSOR_DATA(&f.box.item[i].value, float), 2, 0);
        else if (strstr(key, ";index;"))
            assert_int_equal(*TENSOR_DATA(&f.box.item[i].value, int32_t), 1);
        else
            assert_true(f.box.item[i].dead);
    }
    end(&f);
}

static void put_loop_node(struct graph_text *g, const char *name,
                          const char *op, const char *inputs, enum dtype dt)
{
    graph_text_node(g, name, op, inputs);
    graph_text_type(g, "T", dt);
}

/* while (x < limit) x = x * x; with a send in each iteration. */
static void put_square_loop(struct graph_text *g, int parallel)
{
    float two = 2, limit = 1000;

    graph_text_const(g, "start", DT_FLOAT, &two);
    graph_text_const(g, "limit", DT_FLOAT, &limit);
    put_loop_node(g, "enter", "Enter", "start", DT_FLOAT);
    graph_text_str(g, "frame_name", "while/while_context");
    graph_text_int(g, "parallel_iterations", parallel);
    put_loop_node(g, "limit_in", "Enter", "limit", DT_FLOAT);
    graph_text_str(g, "frame_name", "while/while_context");
    graph_text_bool(g, "is_constant", true);
    graph_text_int(g, "parallel_iterations", parallel);
    put_loop_node(g, "merge", "Merge", "enter,next", DT_FLOAT);
    graph_text_int(g, "N", 2);
    put_loop_node(g, "less", "Less", "merge,limit_in", DT_FLOAT);
    graph_text_node(g, "cond", "LoopCond", "less");
    put_loop_node(g, "switch", "Switch", "merge,cond", DT_FLOAT);
    put_loop_node(g, "body", "Square", "switch:1", DT_FLOAT);
    put_loop_node(g, "next", "NextIteration", "body", DT_FLOAT);
    put_loop_node(g, "exit", "Exit", "switch:0", DT_FLOAT);
    put_send(g, "each", "body", DT_FLOAT);
    put_send(g, "result", "exit", DT_FLOAT);
}

static void check_square_loop(int parallel)
{
    struct fixture f;
    struct graph_text g;
    int each = 0, dead = 0;
    float last = 0;

    graph_text_init(&g);
    put_square_loop(&g, parallel);
    assert_int_equal(make(&f, &g), MST_OK);
    for (int i = 0; i < 2; i++) {
        each = dead = 0;
        assert_int_equal(run(&f), MST_OK);
        for (int k = 0; k < f.box.count; k++) {
            const char *key = f.box.item[k].key;

            if (strstr(key, ";result;"))
                last = *TENSOR_DATA(&f.box.item[k].value, float);
            else if (f.box.item[k].dead)
                dead++;
            else
                each++;
            /* TensorFlow's own id of this frame at the root. */
            if (strstr(key, ";each;"))
                assert_non_null(strstr(key, ";18186195969791715286:"));
        }
        empty_box(&f);
        /* 2, 4, 16, 256, 65536: four squares, then the condition fails. */
        assert_int_equal(each, 4);
        assert_int_equal(dead, 1);
        assert_float_equal(last, 65536, 0);
    }
    end(&f);
}

static void test_step_loop_runs_and_names_frames(void **state)
{
    (void)state;
    check_square_loop(10);
}

static void test_step_loop_waits_for_room(void **state)
{
    (void)state;
    check_square_loop(1);
}

/* ---- on many threads ---- */

static void put_enter(struct graph_text *g, const char *name, const char *from,
                      enum dtype dt, const char *frame, bool constant)
{
    put_loop_node(g, name, "Enter", from, dt);
    graph_text_str(g, "frame_name", frame);
    graph_text_bool(g, "is_constant", constant);
    graph_text_int(g, "parallel_iterations", 4);
}

/*
 * for (i = 0; i < 6; i++)
 *     for (j = 0; j < 3; j++)
 *         x = -x + x * x, over so many elements that each op goes to the pool.
 */
static void put_nested_loops(struct graph_text *g, int elems)
{
    int zero = 0, one = 1, outer = 6, inner = 3;
    float half = 0.5f;

    graph_text_const(g, "zero", DT_INT32, &zero);
    graph_text_const(g, "one", DT_INT32, &one);
    graph_text_const(g, "outer", DT_INT32, &outer);
    graph_text_const(g, "inner", DT_INT32, &inner);
    graph_text_const(g, "half", DT_FLOAT, &half);
    graph_text_const(g, "elems", DT_INT32, &elems);
    graph_text_node(g, "shape", "ExpandDims", "elems,zero");
    graph_text_type(g, "T", DT_INT32);
    graph_text_node(g, "start", "Fill", "shape,half");
    graph_text_type(g, "T", DT_FLOAT);
    put_enter(g, "i_in", "zero", DT_INT32, "a", false);
    put_enter(g, "x_in", "start", DT_FLOAT, "a", false);
    put_enter(g, "one_a", "one", DT_INT32, "a", true);
    put_enter(g, "zero_a", "zero", DT_INT32, "a", true);
    put_enter(g, "outer_a", "outer", DT_INT32, "a", true);
    put_enter(g, "inner_a", "inner", DT_INT32, "a", true);
    put_loop_node(g, "i", "Merge", "i_in,i_next", DT_INT32);
    graph_text_int(g, "N", 2);
    put_loop_node(g, "x", "Merge", "x_in,x_next", DT_FLOAT);
    graph_text_int(g, "N", 2);
    put_loop_node(g, "i_less", "Less", "i,outer_a", DT_INT32);
    graph_text_node(g, "i_cond", "LoopCond", "i_less");
    put_loop_node(g, "i_switch", "Switch", "i,i_cond", DT_INT32);
    put_loop_node(g, "x_switch", "Switch", "x,i_cond", DT_FLOAT);
    put_loop_node(g, "i_add", "AddV2", "i_switch:1,one_a", DT_INT32);
    put_loop_node(g, "i_next", "NextIteration", "i_add", DT_INT32);
    put_enter(g, "j_in", "zero_a", DT_INT32, "b", false);
    put_enter(g, "u_in", "x_switch:1", DT_FLOAT, "b", false);
    put_enter(g, "one_b", "one_a", DT_INT32, "b", true);
    put_enter(g, "inner_b", "inner_a", DT_INT32, "b", true);
    put_loop_node(g, "j", "Merge", "j_in,j_next", DT_INT32);
    graph_text_int(g, "N", 2);
    put_loop_node(g, "u", "Merge", "u_in,u_next", DT_FLOAT);
    graph_text_int(g, "N", 2);
    put_loop_node(g, "j_less", "Less", "j,inner_b", DT_INT32);
    graph_text_node(g, "j_cond", "LoopCond", "j_less");
    put_loop_node(g, "j_switch", "Switch", "j,j_cond", DT_INT32);
    put_loop_node(g, "u_switch", "Switch", "u,j_cond", DT_FLOAT);
    put_loop_node(g, "j_add", "AddV2", "j_switch:1,one_b", DT_INT32);
    put_loop_node(g, "j_next", "NextIteration", "j_add", DT_INT32);
    put_loop_node(g, "u_neg", "Neg", "u_switch:1", DT_FLOAT);
    put_loop_node(g, "u_square", "Square", "u_switch:1", DT_FLOAT);
    put_loop_node(g, "u_sum", "AddV2", "u_neg,u_square", DT_FLOAT);
    put_loop_node(g, "u_next", "NextIteration", "u_sum", DT_FLOAT);
    put_loop_node(g, "j_exit", "Exit", "j_switch:0", DT_INT32);
    put_loop_node(g, "u_exit", "Exit", "u_switch:0", DT_FLOAT);
    put_loop_node(g, "x_next", "NextIteration", "u_exit", DT_FLOAT);
    put_loop_node(g, "x_exit", "Exit", "x_switch:0", DT_FLOAT);
    put_loop_node(g, "result", "_Retval", "x_exit", DT_FLOAT);
    graph_text_int(g, "index", 0);
}

struct runner {
    struct fixture *f;
    struct status st;
    float last;
    sem_t done;
    bool fail;
};

static void runner_done(void *arg, struct step *s, const struct status *st)
{
    struct runner *r = arg;

    status_copy(&r->st, st);
    if (!st->code) {
        struct tensor *t = &step_results(s)[0].t;

        r->last = TENSOR_DATA(t, float)[t->count - 1];
    }
    sem_post(&r->done);
}

static void *run_many(void *arg)
{
    struct runner *r = arg;
    struct status gone = STATUS_INIT;

    status_set(&gone, MST_ABORTED, "enough");
    for (int i = 0; i < 5; i++) {
        struct step_opts opts = { .env = { .id = i, .cancel = &r->f->cancel },
                                  .done = runner_done,
                                  .arg = r };
        struct step *s = step_new(r->f->plan, &opts);

        status_clear(&r->st);
        step_hold(s);
        step_run(s);
        if (r->fail)
            step_fail(s, &gone);
        step_drop(s);
        sem_wait(&r->done);
        if (r->st.code != MST_ABORTED || !r->fail)
            assert_int_equal(r->st.code, MST_OK);
    }
    return NULL;
}

static void check_many(int elems)
{
    struct graph_text g;
    struct fixture f;
    struct runner r[3];
    pthread_t t[3];
    float want = 0.5f;

    for (int i = 0; i < 18; i++)
        want = -want + want * want;
    graph_text_init(&g);
    put_nested_loops(&g, elems);
    assert_int_equal(make(&f, &g), MST_OK);
    f.plan->env.pool = pool_new(3);
    for (int i = 0; i < 3; i++) {
        r[i] = (struct runner){ .f = &f, .fail = i == 2 };
        sem_init(&r[i].done, 0, 0);
        assert_int_equal(pthread_create(&t[i], NULL, run_many, &r[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(t[i], NULL);
        sem_destroy(&r[i].done);
        if (!r[i].fail)
            assert_float_equal(r[i].last, want, 0);
    }
    pool_free(f.plan->env.pool);
    end(&f);
}

static void test_step_loops_on_many_threads(void **state)
{
    (void)state;
    check_many(1);
    check_many(150000);
}

static void test_plan_refuses(void **state)
{
    static const struct {
        const char *op, *input;
        int type;
        enum mst_code code;
        const char *text;
    } cases[] = {
        { "Neg", "nobody", DT_FLOAT, MST_INVALID_ARGUMENT,
          "Unknown input node 'nobody'" },
        { "Neg", "c", DT_INT32, MST_INVALID_ARGUMENT,
          "was passed float from c:0 incompatible with expected int32" },
        { "Neg", "c:1", DT_FLOAT, MST_INVALID_ARGUMENT,
          "invalid output 1 of source node c" },
        { "Neg", "c,c", DT_FLOAT, MST_INVALID_ARGUMENT,
          "expected inputs 'float' do not match 2" },
        { "Neg", "n", DT_FLOAT, MST_INVALID_ARGUMENT, "1 nodes in a cycle" },
        { "Neg", "c", DT_STRING, MST_INVALID_ARGUMENT,
          "not in the list of allowed values" },
        { "NoSuchOp", "c", DT_FLOAT, MST_NOT_FOUND,
          "Op type not registered 'NoSuchOp'" },
        { "NextIteration", "c", DT_FLOAT, MST_INVALID_ARGUMENT,
          "outside of a loop" },
        { "Exit", "c", DT_FLOAT, MST_INVALID_ARGUMENT, "not in" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fixture f;
        struct graph_text g;
        float x = 1;

        graph_text_init(&g);
        graph_text_const(&g, "c", DT_FLOAT, &x);
        graph_text_node(&g, "n", cases[i].op, cases[i].input);
        graph_text_type(&g, "T", cases[i].type);
        assert_int_equal(make(&f, &g), cases[i].code);
        assert_non_null(strstr(f.st.msg, cases[i].text));
        resources_unref(f.env.resources);
        cancel_done(&f.cancel);
    }
}

static void test_step_missing_value_fails_with_node(void **state)
{
    struct fixture f;
    struct graph_text g;

    (void)state;
    graph_text_init(&g);
    graph_text_node(&g, "r", "_Recv", NULL);
    graph_text_type(&g, "tensor_type", DT_FLOAT);
    graph_text_str(&g, "tensor_name", "x");
    graph_text_str(&g, "send_device", g.device);
    graph_text_str(&g, "recv_device", g.device);
    graph_text_int(&g, "send_device_incarnation", 1);
    put_send(&g, "s", "r", DT_FLOAT);
    assert_int_equal(make(&f, &g), MST_OK);
    assert_int_equal(run(&f), MST_NOT_FOUND);
    assert_non_null(strstr(f.st.msg, "[[{{node r}}]]"));
    assert_int_equal(f.box.count, 0);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step_sends_value),
        cmocka_unit_test(test_step_switch_kills_other_branch),
        cmocka_unit_test(test_step_loop_runs_and_names_frames),
        cmocka_unit_test(test_step_loop_waits_for_room),
        cmocka_unit_test(test_step_loops_on_many_threads),
        cmocka_unit_test(test_plan_refuses),
        cmocka_unit_test(test_step_missing_value_fails_with_node),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
