/*
 * The executor alone: what a step costs beside its arithmetic. Graphs are
 * compiled and run in this process, without a server, on a pool as a server
 * has it; the thread that starts the steps stands for a loop's thread.
 *
 * For each graph: nodes run a step, time a step and a node (the median of the
 * rounds), and, counted in rounds of their own, calls of malloc and its kin,
 * locks taken, and threads woken. The counting functions stand in for the C
 * library's own, so whatever lies below is counted too.
 *
 *   bench_executor [-0] [-r rounds] [-t seconds a round]
 *                  [-p threads of the pool] [graph...]
 *
 * With -0 graphs are run as they are, not optimised.
 */
#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "exec/step.h"
#include "graph/testing.h"

#define ROUNDS_MAX 101
#define ARGS_MAX   2

static int rounds = 9, threads = 2;
static double round_s = 0.1;
static bool optimised = true;

/* --- what is counted --- */

static atomic_bool counting;
static atomic_long mallocs, locks, wakes;

static inline void tick(atomic_long *what)
{
    if (atomic_load_explicit(&counting, memory_order_relaxed))
        atomic_fetch_add_explicit(what, 1, memory_order_relaxed);
}

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

void *malloc(size_t size)
{
    tick(&mallocs);
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    tick(&mallocs);
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    tick(&mallocs);
    return __libc_realloc(old, size);
}

void *aligned_alloc(size_t align, size_t size)
{
    tick(&mallocs);
    return __libc_memalign(align, size);
}

static int (*real_lock)(pthread_mutex_t *);
static int (*real_signal)(pthread_cond_t *);
static int (*real_broadcast)(pthread_cond_t *);
static int (*real_post)(sem_t *);

__attribute__((constructor)) static void find_real(void)
{
    *(void **)&real_lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
    *(void **)&real_signal = dlsym(RTLD_NEXT, "pthread_cond_signal");
    *(void **)&real_broadcast = dlsym(RTLD_NEXT, "pthread_cond_broadcast");
    *(void **)&real_post = dlsym(RTLD_NEXT, "sem_post");
}

int pthread_mutex_lock(pthread_mutex_t *m)
{
    if (!real_lock)
        find_real();
    tick(&locks);
    return real_lock(m);
}

int pthread_cond_signal(pthread_cond_t *c)
{
    tick(&wakes);
    return real_signal(c);
}

int pthread_cond_broadcast(pthread_cond_t *c)
{
    tick(&wakes);
    return real_broadcast(c);
}

int sem_post(sem_t *s)
{
    tick(&wakes);
    return real_post(s);
}

/* --- graphs --- */

static struct tensor random_tensor(int rows, int cols)
{
    struct status st = STATUS_INIT;
    struct tensor t = { 0 };

    CHECK(!tensor_new(&t, DT_FLOAT, 2, (const int64_t[]){ rows, cols }, &st));
    for (int64_t i = 0; i < t.count; i++)
        TENSOR_DATA(&t, float)[i] = (float)((i * 7919) % 1000) / 5000 - 0.1f;
    return t;
}

static void node(struct graph_text *g, const char *name, const char *op,
                 const char *inputs)
{
    graph_text_node(g, name, op, inputs);
    graph_text_type(g, "T", DT_FLOAT);
}

static void arg(struct graph_text *g, const char *name, enum dtype dt,
                int index)
{
    graph_text_node(g, name, "_Arg", NULL);
    graph_text_type(g, "T", dt);
    graph_text_int(g, "index", index);
}

static void retval(struct graph_text *g, const char *input)
{
    node(g, "ret", "_Retval", input);
    graph_text_int(g, "index", 0);
}

static void scalar(struct graph_text *g, const char *name, float value)
{
    graph_text_const(g, name, DT_FLOAT, &value);
}

static void int_vector(struct graph_text *g, const char *name, int count,
                       const int *values)
{
    struct status st = STATUS_INIT;
    struct tensor t;

    CHECK(!tensor_new(&t, DT_INT32, 1, (const int64_t[]){ count }, &st));
    memcpy(t.data, values, (size_t)count * sizeof(int));
    graph_text_node(g, name, "Const", NULL);
    graph_text_type(g, "dtype", DT_INT32);
    graph_text_tensor(g, "value", &t);
    tensor_unref(&t);
}

/* An argument that is fed and fetched. */
static void put_null(struct graph_text *g)
{
    arg(g, "x", DT_FLOAT, 0);
    retval(g, "x");
}

static void put_chain(struct graph_text *g)
{
    char name[32], from[32] = "x";

    arg(g, "x", DT_FLOAT, 0);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        node(g, name, i % 2 ? "Neg" : "Sqrt", from);
        strcpy(from, name);
    }
    retval(g, from);
}

static void put_fan(struct graph_text *g)
{
    char name[32], from[32], *all = mem_new(1000 * 8);

    arg(g, "x", DT_FLOAT, 0);
    for (int i = 0; i < 1000; i++) {
        snprintf(from, sizeof(from), "x,c%d", i);
        snprintf(name, sizeof(name), "n%d", i);
        sprintf(all + strlen(all), "%s%s", i ? "," : "", name);
        scalar(g, from + 2, (float)i);
        node(g, name, "Mul", from);
    }
    node(g, "sum", "AddN", all);
    graph_text_int(g, "N", 1000);
    retval(g, "sum");
    mem_free(all);
}

static void put_matmul(struct graph_text *g, const char *name,
                       const char *inputs, bool ta, bool tb)
{
    node(g, name, "MatMul", inputs);
    graph_text_bool(g, "transpose_a", ta);
    graph_text_bool(g, "transpose_b", tb);
}

static void put_variable_node(struct graph_text *g, const char *name)
{
    static uint8_t unknown_rank[] = { 0x3a, 2, 0x18, 1 };
    struct pb_out shape = { .data = unknown_rank, .len = 4 };

    graph_text_node(g, name, "VariableV2", NULL);
    graph_text_type(g, "dtype", DT_FLOAT);
    graph_text_str(g, "shared_name", name);
    graph_text_attr(g, "shape", &shape);
}

/* A variable and its accumulator, read as NAME_read. */
static void put_variable(struct graph_text *g, const char *name)
{
    char text[40];

    put_variable_node(g, name);
    snprintf(text, sizeof(text), "%s_acc", name);
    put_variable_node(g, text);
    snprintf(text, sizeof(text), "%s_read", name);
    node(g, text, "Identity", name);
}

static void put_update(struct graph_text *g, const char *name,
                       const char *gradient)
{
    char own[40], inputs[120];

    snprintf(own, sizeof(own), "%s_update", name);
    snprintf(inputs, sizeof(inputs), "%s,%s_acc,rate,%s", name, name, gradient);
    node(g, own, "ApplyAdagrad", inputs);
}

/* 784-128-10, batch 32: forward, backward, Adagrad. */
static void put_mlp(struct graph_text *g)
{
    arg(g, "x", DT_FLOAT, 0);
    arg(g, "labels", DT_INT32, 1);
    scalar(g, "rate", 0.01f);
    scalar(g, "share", 1.0f / 32);
    int_vector(g, "rows", 1, (const int[]){ 0 });
    put_variable(g, "w1");
    put_variable(g, "b1");
    put_variable(g, "w2");
    put_variable(g, "b2");
    put_matmul(g, "m1", "x,w1_read", false, false);
    node(g, "a1", "BiasAdd", "m1,b1_read");
    node(g, "h", "Relu", "a1");
    put_matmul(g, "m2", "h,w2_read", false, false);
    node(g, "logits", "BiasAdd", "m2,b2_read");
    node(g, "xent", "SparseSoftmaxCrossEntropyWithLogits", "logits,labels");
    graph_text_type(g, "Tlabels", DT_INT32);
    node(g, "loss", "Mean", "xent,rows");
    graph_text_type(g, "Tidx", DT_INT32);
    node(g, "d_logits", "Mul", "xent:1,share");
    node(g, "d_b2", "BiasAddGrad", "d_logits");
    put_matmul(g, "d_w2", "h,d_logits", true, false);
    put_matmul(g, "d_h", "d_logits,w2_read", false, true);
    node(g, "d_a1", "ReluGrad", "d_h,h");
    node(g, "d_b1", "BiasAddGrad", "d_a1");
    put_matmul(g, "d_w1", "x,d_a1", true, false);
    put_update(g, "w1", "d_w1");
    put_update(g, "b1", "d_b1");
    put_update(g, "w2", "d_w2");
    put_update(g, "b2", "d_b2");
    retval(g, "loss");
}

static void enter(struct graph_text *g, const char *name, const char *input,
                  enum dtype dt, bool constant)
{
    graph_text_node(g, name, "Enter", input);
    graph_text_type(g, "T", dt);
    graph_text_str(g, "frame_name", "while");
    graph_text_bool(g, "is_constant", constant);
    graph_text_int(g, "parallel_iterations", 32);
}

/* A value that goes round: name_in enters, name is its value in an iteration,
 * name_next is what follows. */
static void put_round(struct graph_text *g, const char *name, const char *from,
                      const char *next, enum dtype dt)
{
    char n[6][40], in[120];

    for (int i = 0; i < 6; i++)
        snprintf(n[i], sizeof(n[i]), "%s_%s", name,
                 (const char *[]){ "in", "merge", "switch", "next", "exit",
                                   "body" }[i]);
    enter(g, n[0], from, dt, false);
    snprintf(in, sizeof(in), "%s,%s", n[0], n[3]);
    graph_text_node(g, n[1], "Merge", in);
    graph_text_type(g, "T", dt);
    graph_text_int(g, "N", 2);
    snprintf(in, sizeof(in), "%s,cond", n[1]);
    graph_text_node(g, n[2], "Switch", in);
    graph_text_type(g, "T", dt);
    graph_text_node(g, n[3], "NextIteration", next);
    graph_text_type(g, "T", dt);
    graph_text_node(g, n[4], "Exit", n[2]);
    graph_text_type(g, "T", dt);
    snprintf(in, sizeof(in), "%s:1", n[2]);
    graph_text_node(g, name, "Identity", in);
    graph_text_type(g, "T", dt);
}

/* 100 iterations of an LSTM cell of 16 units, batch 8. */
static void put_loop(struct graph_text *g)
{
    int zero = 0, one = 1, limit = 100;

    arg(g, "x", DT_FLOAT, 0);
    arg(g, "w", DT_FLOAT, 1);
    graph_text_const(g, "zero", DT_INT32, &zero);
    graph_text_const(g, "one", DT_INT32, &one);
    graph_text_const(g, "limit", DT_INT32, &limit);
    enter(g, "x_in", "x", DT_FLOAT, true);
    enter(g, "w_in", "w", DT_FLOAT, true);
    enter(g, "one_in", "one", DT_INT32, true);
    enter(g, "limit_in", "limit", DT_INT32, true);
    put_round(g, "i", "zero", "i_add", DT_INT32);
    put_round(g, "c", "x", "c_new", DT_FLOAT);
    put_round(g, "h", "x", "h_new", DT_FLOAT);
    graph_text_node(g, "less", "Less", "i_merge,limit_in");
    graph_text_type(g, "T", DT_INT32);
    graph_text_node(g, "cond", "LoopCond", "less");
    graph_text_node(g, "i_add", "AddV2", "i,one_in");
    graph_text_type(g, "T", DT_INT32);
    node(g, "xh", "AddV2", "x_in,h");
    put_matmul(g, "gates", "xh,w_in", false, false);
    node(g, "split", "Split", "one_in,gates");
    graph_text_int(g, "num_split", 4);
    node(g, "gate_i", "Sigmoid", "split:0");
    node(g, "gate_j", "Tanh", "split:1");
    node(g, "gate_f", "Sigmoid", "split:2");
    node(g, "gate_o", "Sigmoid", "split:3");
    node(g, "c_keep", "Mul", "c,gate_f");
    node(g, "c_add", "Mul", "gate_i,gate_j");
    node(g, "c_new", "AddV2", "c_keep,c_add");
    node(g, "c_tanh", "Tanh", "c_new");
    node(g, "h_new", "Mul", "c_tanh,gate_o");
    retval(g, "h_exit");
}

static struct tensor make_scalar(void)
{
    struct status st = STATUS_INIT;
    struct tensor t;

    CHECK(!tensor_new_scalar(&t, DT_FLOAT, &st));
    *TENSOR_DATA(&t, float) = 2;
    return t;
}

static void scalar_args(struct tensor *args)
{
    args[0] = make_scalar();
}

static void mlp_args(struct tensor *args)
{
    struct status st = STATUS_INIT;

    args[0] = random_tensor(32, 784);
    CHECK(!tensor_new(&args[1], DT_INT32, 1, (const int64_t[]){ 32 }, &st));
    for (int i = 0; i < 32; i++)
        TENSOR_DATA(&args[1], int32_t)[i] = i % 10;
}

static void loop_args(struct tensor *args)
{
    args[0] = random_tensor(8, 16);
    args[1] = random_tensor(16, 64);
}

struct shape_of {
    const char *name;
    int rows, cols; /* no rows: a vector */
    bool slot;
};

static struct object *make_variable(void *arg, struct status *st)
{
    const struct shape_of *s = arg;
    struct variable *v = variable_new(s->name, DT_FLOAT, true);

    (void)st;
    v->t = random_tensor(MAX(s->rows, 1), s->cols);
    for (int64_t i = 0; i < v->t.count && s->slot; i++)
        TENSOR_DATA(&v->t, float)[i] = 0.1f;
    if (!s->rows) {
        v->t.ndim = 1;
        v->t.dims[0] = s->cols;
    }
    return &v->o;
}

static void mlp_init(struct resources *r)
{
    static struct shape_of all[] = {
        { "w1", 784, 128, false },    { "b1", 0, 128, false },
        { "w2", 128, 10, false },     { "b2", 0, 10, false },
        { "w1_acc", 784, 128, true }, { "b1_acc", 0, 128, true },
        { "w2_acc", 128, 10, true },  { "b2_acc", 0, 10, true },
    };

    for (size_t i = 0; i < COUNT(all); i++) {
        struct handle *h = resources_handle(r, "", &variable_kind, all[i].name);
        struct status st = STATUS_INIT;

        object_unref(handle_get_or_make(h, make_variable, &all[i], &st));
        handle_unref(h);
    }
}

static const struct {
    const char *name, *what;
    void (*put)(struct graph_text *g);
    void (*args)(struct tensor *args);
    void (*init)(struct resources *r);
} graphs[] = {
    { "null", "one value in and out", put_null, scalar_args, NULL },
    { "chain", "100 scalar nodes, one after another", put_chain, scalar_args,
      NULL },
    { "fan", "1000 scalar nodes side by side", put_fan, scalar_args, NULL },
    { "mlp", "784-128-10, batch 32, one step of Adagrad", put_mlp, mlp_args,
      mlp_init },
    { "loop", "100 iterations of an LSTM cell, 16 units, batch 8", put_loop,
      loop_args, NULL },
};

/* --- running --- */

struct bench {
    struct plan *plan;
    struct op_env env;
    struct cancel cancel;
    struct tensor args[ARGS_MAX];
    atomic_bool over;
    sem_t done;
    int64_t nodes;
};

static void on_done(void *p, struct step *s, const struct status *st)
{
    struct bench *b = p;
    int count;

    if (st->code) {
        fprintf(stderr, "bench_executor: %s\n", st->msg);
        exit(1);
    }
    (void)step_stats(s, &count);
    b->nodes = count;
    if (atomic_exchange(&b->over, true))
        real_post(&b->done);
}

static void run_one(struct bench *b, bool record)
{
    struct op_value args[ARGS_MAX] = { 0 };
    struct step_opts opts = { .env = { .id = 1, .cancel = &b->cancel },
                              .record = record,
                              .args = args,
                              .arg_count = b->plan->arg_count,
                              .done = on_done,
                              .arg = b };

    for (int i = 0; i < b->plan->arg_count; i++)
        args[i].t = tensor_ref(&b->args[i]);
    atomic_store(&b->over, false);
    step_run(step_new(b->plan, &opts));
    if (!atomic_exchange(&b->over, true))
        sem_wait(&b->done);
}

static void open_bench(struct bench *b, int which, struct pool *pool)
{
    struct status st = STATUS_INIT;
    struct graph_library *lib;
    struct graph_text g;

    memset(b, 0, sizeof(*b));
    cancel_init(&b->cancel);
    sem_init(&b->done, 0, 0);
    b->env.pool = pool;
    b->env.resources = resources_new("localhost");
    b->env.device = "/job:localhost/replica:0/task:0/device:CPU:0";
    if (graphs[which].init)
        graphs[which].init(b->env.resources);
    graphs[which].args(b->args);
    graph_text_init(&g);
    graphs[which].put(&g);
    lib = graph_text_library(&g, &st);
    if (!lib || plan_new(lib, &b->env, optimised, &b->plan, &st)) {
        fprintf(stderr, "bench_executor: %s: %s\n", graphs[which].name, st.msg);
        exit(1);
    }
}

static void close_bench(struct bench *b)
{
    plan_unref(b->plan);
    for (int i = 0; i < ARGS_MAX; i++)
        tensor_unref(&b->args[i]);
    resources_unref(b->env.resources);
    cancel_done(&b->cancel);
    sem_destroy(&b->done);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double time_step(struct bench *b)
{
    double ns[ROUNDS_MAX];

    for (int i = 0; i < rounds; i++) {
        uint64_t begin = clock_ns(), now;
        long n = 0;

        do {
            for (int k = 0; k < 10; k++)
                run_one(b, false);
            n += 10;
            now = clock_ns();
        } while (now - begin < (uint64_t)(round_s * 1e9));
        ns[i] = (double)(now - begin) / (double)n;
    }
    qsort(ns, (size_t)rounds, sizeof(ns[0]), by_value);
    return ns[rounds / 2];
}

static void measure(int which, struct pool *pool)
{
    enum { STEPS = 200 };
    struct bench b;
    double ns, nodes;

    open_bench(&b, which, pool);
    run_one(&b, true);
    nodes = (double)b.nodes;
    for (int i = 0; i < STEPS; i++)
        run_one(&b, false);
    mallocs = locks = wakes = 0;
    atomic_store(&counting, true);
    for (int i = 0; i < STEPS; i++)
        run_one(&b, false);
    atomic_store(&counting, false);
    ns = time_step(&b);
    printf("%-8s %7.0f %10.2f %9.1f %10.2f %8.2f %7.2f  %s\n",
           graphs[which].name, nodes, ns / 1e3, ns / nodes,
           (double)mallocs / STEPS, (double)locks / STEPS,
           (double)wakes / STEPS, graphs[which].what);
    fflush(stdout);
    close_bench(&b);
}

int main(int argc, char **argv)
{
    struct pool *pool;
    int opt;

    while ((opt = getopt(argc, argv, "0r:t:p:")) != -1) {
        if (opt == 'r')
            rounds = MAX(1, MIN(atoi(optarg), ROUNDS_MAX));
        else if (opt == 't')
            round_s = atof(optarg);
        else if (opt == 'p')
            threads = MAX(1, atoi(optarg));
        else if (opt == '0')
            optimised = false;
        else
            return 2;
    }
    pool = pool_new(threads);
    printf("%-8s %7s %10s %9s %10s %8s %7s\n", "graph", "nodes", "us/step",
           "ns/node", "mallocs", "locks", "wakes");
    for (size_t i = 0; i < COUNT(graphs); i++) {
        bool wanted = optind == argc;

        for (int k = optind; k < argc; k++)
            wanted |= !strcmp(argv[k], graphs[i].name);
        if (wanted)
            measure((int)i, pool);
    }
    pool_free(pool);
    return 0;
}
