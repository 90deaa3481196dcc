/*
 * Where streams of random numbers begin, and how far each node's has come.
 */
#include "kernel/random_state.h"

#include <pthread.h>

#include "base/mem.h"
#include "base/rng.h"

struct random_state {
    struct object o;
    pthread_mutex_t lock;
    struct philox gen; /* under lock */
};

static void state_free(struct object *o)
{
    struct random_state *s = CONTAINER(o, struct random_state, o);

    pthread_mutex_destroy(&s->lock);
    mem_free(s);
}

static const struct object_kind state_kind = { "random state", state_free };

static struct object *state_make(void *arg, struct status *st)
{
    const struct op_node *n = arg;
    struct random_state *s = MEM_NEW(struct random_state);
    uint64_t seed = (uint64_t)op_attr_int(n, "seed");
    uint64_t seed2 = (uint64_t)op_attr_int(n, "seed2");

    (void)st;
    if (!seed && !seed2) { /* nobody wants to see it again */
        seed = rng_u64();
        seed2 = rng_u64();
    }
    object_init(&s->o, &state_kind);
    pthread_mutex_init(&s->lock, NULL);
    s->gen = philox_seeded(seed, seed2);
    return &s->o;
}

enum mst_code random_state_init(struct op_node *n, struct status *st)
{
    struct resources *segment = n->env->segment;
    struct handle *h;

    if (!segment) {
        n->state = state_make(n, st);
        return MST_OK;
    }
    h = resources_handle(segment, "", &state_kind, n->name);
    n->state = handle_get_or_make(h, state_make, n, st);
    handle_unref(h);
    return MST_OK;
}

void random_state_done(struct op_node *n)
{
    object_unref(n->state);
    n->state = NULL;
}

struct philox random_reserve(struct op_ctx *c, uint64_t blocks)
{
    struct random_state *s = CONTAINER(c->node->state, struct random_state, o);
    struct philox gen;

    pthread_mutex_lock(&s->lock);
    gen = s->gen;
    philox_skip(&s->gen, blocks);
    pthread_mutex_unlock(&s->lock);
    return gen;
}

/* A seed of two numbers becomes key and counter by running it through the
 * cipher once, under a key that is always the same: weak seeds do no harm. */
enum mst_code random_scramble(struct op_ctx *c, int i, struct philox *ret)
{
    const struct tensor *t = op_in(c, i);
    char text[SHAPE_TEXT_MAX];
    struct philox p = { .key = { 0x3ec8f720u, 0x02461e29u } };
    uint32_t word[4];

    if (t->ndim != 1 || t->count != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "seed must have shape [2], not %s",
                       tensor_shape_text(t, text));
    if (t->dtype != DT_INT32 && t->dtype != DT_INT64)
        return op_fail(c, MST_INVALID_ARGUMENT, "Invalid seed type: %s",
                       dtype_name(t->dtype));
    for (int k = 0; k < 2; k++) {
        uint64_t v = (uint64_t)tensor_int(t, k);

        p.counter[2 * k] = (uint32_t)v;
        p.counter[2 * k + 1] = (uint32_t)(v >> 32);
    }
    philox_next(&p, word);
    *ret = (struct philox){ .key = { word[0], word[1] },
                            .counter = { 0, 0, word[2], word[3] } };
    return MST_OK;
}
