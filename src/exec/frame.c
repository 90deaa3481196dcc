#include "exec/frame.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

/* ---- ready nodes ---- */

void ready_init(struct ready *r)
{
    r->current = NULL;
    r->items = r->few;
    r->memory = NULL;
    r->head = r->tail = 0;
    r->room = COUNT(r->few);
}

void ready_done(struct ready *r)
{
    buffer_unref(r->memory);
}

/* Makes room at the end: moves what is there to the front, or to a larger
 * place when there is little to be won by that. */
static void ready_room(struct ready *r)
{
    int count = r->tail - r->head;
    struct buffer *memory = NULL;
    struct item *to = r->items;

    if (r->head < r->room / 2) {
        r->room *= 2;
        memory = buffer_new((size_t)r->room * sizeof(*to));
        CHECK(memory);
        to = (struct item *)memory->data;
    }
    memmove(to, r->items + r->head, (size_t)count * sizeof(*to));
    if (memory) {
        buffer_unref(r->memory);
        r->memory = memory;
        r->items = to;
    }
    r->head = 0;
    r->tail = count;
}

void ready_push(struct ready *r, struct item item)
{
    if (UNLIKELY(r->tail == r->room))
        ready_room(r);
    r->items[r->tail++] = item;
}

/* ---- iterations ---- */

static size_t align16(size_t n)
{
    return (n + 15) & ~(size_t)15;
}

struct iteration *iteration_new(struct step *s, struct frame *f)
{
    const struct plan_frame *d = f->def;
    size_t slots = align16(sizeof(struct iteration));
    size_t jobs =
        slots + align16((size_t)d->slot_count * sizeof(struct op_value));
    size_t async =
        jobs + align16((size_t)d->node_count * sizeof(struct item_job));
    size_t state = async + align16((size_t)d->async_count * sizeof(void *));
    size_t total = state + (size_t)d->node_count * sizeof(atomic_uint);
    struct iteration *it = s->spare[f->def_index];
    uint8_t *base;

    if (it) {
        s->spare[f->def_index] = it->next;
    } else {
        it = mem_new(total);
        base = (uint8_t *)it;
        it->slots = (struct op_value *)(base + slots);
        it->jobs = (struct item_job *)(base + jobs);
        it->async = (struct async_run **)(base + async);
        it->state = (atomic_uint *)(base + state);
    }
    it->frame = f;
    it->number = 0;
    it->inner = 0;
    it->children = NULL;
    it->next = NULL;
    atomic_store_explicit(&it->outstanding, 0, memory_order_relaxed);
    for (int i = 0; i < d->node_count; i++)
        atomic_store_explicit(&it->state[i], d->pending[i],
                              memory_order_relaxed);
    return it;
}

/* Lets go of values that nobody took: after a failure, or of a node that what
 * else it waits for never comes to, as where a loop ends. */
void iteration_release(struct iteration *it, const struct plan_frame *def)
{
    for (int i = 0; i < def->slot_count; i++)
        value_release(&it->slots[i]);
}

void iteration_free(struct iteration *it, const struct plan_frame *def)
{
    for (int i = 0; i < def->async_count; i++)
        mem_free(it->async[i]);
    mem_free(it);
}

static void iteration_spare(struct step *s, struct iteration *it)
{
    int at = it->frame->def_index;

    it->next = s->spare[at];
    s->spare[at] = it;
}

/* ---- delivery along edges ---- */

static inline void schedule(const struct plan_node *n, struct iteration *it,
                            bool dead, struct ready *r)
{
    if (it == r->current)
        r->gained++;
    else if (it->frame->parent)
        atomic_fetch_add_explicit(&it->outstanding, 1, memory_order_relaxed);
    ready_push(r, (struct item){ n, it, dead });
}

/*
 * A dead value from an Enter makes the Merge dead at once: what would come
 * round the loop never does. TensorFlow has the same rule, and its partitions
 * rely on it: a loop that spans tasks is entered by control nodes of the other
 * task even where it stands in a branch that is not taken, and waits for the
 * dead condition. (A loop's Merge has two inputs.)
 */
static void deliver_merge(const struct plan_node *n, struct iteration *it,
                          int slot, struct op_value *value, bool from_enter,
                          struct ready *r)
{
    atomic_uint *state = &it->state[n->index];
    uint32_t old, count = from_enter && n->data_in == 2 ? 2 : 1;

    if (slot == EDGE_CONTROL) {
        old = atomic_fetch_sub_explicit(state, 1, memory_order_acq_rel);
        if (MERGE_LEFT(old) == 1) {
            if (old & MERGE_LIVE)
                schedule(n, it, false, r);
            else if (MERGE_DEAD(old) >= (uint32_t)n->data_in)
                schedule(n, it, true, r);
        }
    } else if (!value) {
        old = atomic_fetch_add_explicit(state, MERGE_DEAD_ONE * count,
                                        memory_order_acq_rel);
        if (!MERGE_LEFT(old) && MERGE_DEAD(old) < (uint32_t)n->data_in &&
            MERGE_DEAD(old) + count >= (uint32_t)n->data_in)
            schedule(n, it, true, r);
    } else {
        old =
            atomic_fetch_or_explicit(state, MERGE_TAKEN, memory_order_acq_rel);
        if (old & MERGE_TAKEN) {
            value_release(value);
            return;
        }
        value_move(&it->slots[n->slot + slot], value);
        old = atomic_fetch_or_explicit(state, MERGE_LIVE, memory_order_acq_rel);
        if (!MERGE_LEFT(old))
            schedule(n, it, false, r);
    }
}

/* Moves value (NULL: dead, or a control edge) in. */
static inline void deliver(struct step *s, const struct plan_node *from,
                           const struct plan_edge *e, struct iteration *it,
                           struct op_value *value, bool dead, struct ready *r)
{
    const struct plan_node *n = &s->plan->nodes[e->dst];
    atomic_uint *state = &it->state[n->index];
    uint32_t old;

    if (n->kind == OP_MERGE) {
        deliver_merge(n, it, e->slot, value, from->kind == OP_ENTER, r);
        return;
    }
    if (value)
        value_move(&it->slots[n->slot + e->slot], value);
    dead = dead && !value && n->kind != OP_CONTROL_TRIGGER;
    if (n->data_in + n->control_in == 1) {
        schedule(n, it, dead, r);
        return;
    }
    old = atomic_load_explicit(state, memory_order_acquire);
    if ((old & ~STATE_DEAD) != 1) {
        if (dead)
            atomic_fetch_or_explicit(state, STATE_DEAD, memory_order_relaxed);
        old = atomic_fetch_sub_explicit(state, 1, memory_order_acq_rel);
    }
    if ((old & ~STATE_DEAD) == 1)
        schedule(n, it, dead || (old & STATE_DEAD), r);
}

static struct op_value value_copy(const struct op_value *v)
{
    return (struct op_value){ tensor_ref(&v->t), variable_ref(v->ref) };
}

/* All edges of a node into one iteration; outs keep what nobody wants. */
static void deliver_all(struct step *s, const struct plan_node *n,
                        struct iteration *it, struct op_value *outs, bool dead,
                        struct ready *r)
{
    for (int o = 0; o < n->op.out_count; o++) {
        struct op_value *v = outs && value_set(&outs[o]) ? &outs[o] : NULL;
        int end = n->data_first[o + 1];

        for (int k = n->data_first[o]; k < end; k++) {
            struct op_value copy;

            if (!v || k == end - 1) {
                deliver(s, n, &n->data[k], it, v, !v, r);
            } else {
                copy = value_copy(v);
                deliver(s, n, &n->data[k], it, &copy, false, r);
            }
        }
    }
    for (int k = 0; k < n->control_count; k++)
        deliver(s, n, &n->control[k], it, NULL, dead, r);
}

/* ---- frames ---- */

static uint64_t frame_id(const struct frame *parent,
                         const struct iteration *iter,
                         const struct plan_frame *def)
{
    return hash_combine(parent->id,
                        hash_combine((uint64_t)iter->number, def->name_hash));
}

static int64_t newest(struct frame *f)
{
    return atomic_load_explicit(&f->newest, memory_order_acquire);
}

static struct iteration **ring_at(struct frame *f, int64_t number)
{
    return &f->ring[number % (f->def->parallel + 1)];
}

static struct frame *new_frame(struct step *s, int def_index)
{
    struct frame *f = MEM_NEW(struct frame);

    f->step = s;
    f->def_index = def_index;
    f->def = &s->plan->frames[def_index];
    f->ring = mem_array((size_t)f->def->parallel + 1, sizeof(*f->ring));
    return f;
}

static struct frame *open_frame(struct step *s, struct iteration *it,
                                int def_index)
{
    struct frame *f;

    for (f = it->children; f; f = f->sibling)
        if (f->def_index == def_index)
            return f;
    f = s->spare_frames[def_index];
    if (f)
        s->spare_frames[def_index] = f->sibling;
    else
        f = new_frame(s, def_index);
    f->parent = it->frame;
    f->parent_iter = it;
    f->id = frame_id(it->frame, it, f->def);
    f->enters_left = f->def->enter_count;
    atomic_store_explicit(&f->newest, 0, memory_order_relaxed);
    f->alive = 1;
    *ring_at(f, 0) = iteration_new(s, f);
    f->sibling = it->children;
    it->children = f;
    it->inner++;
    return f;
}

/* All its iterations have ended: it is kept for the next loop of its kind. */
static void close_frame(struct step *s, struct frame *f)
{
    for (int i = 0; i < f->constant_count; i++)
        value_release(&f->constants[i].value);
    for (int i = 0; i < f->waiting_count; i++)
        value_release(&f->waiting[i].value);
    f->constant_count = f->waiting_count = 0;
    f->sibling = s->spare_frames[f->def_index];
    s->spare_frames[f->def_index] = f;
}

void frame_free_spare(struct step *s)
{
    for (int i = 0; i < s->plan->frame_count; i++)
        while (s->spare_frames[i]) {
            struct frame *f = s->spare_frames[i];

            s->spare_frames[i] = f->sibling;
            mem_free(f->constants);
            mem_free(f->waiting);
            mem_free(f->ring);
            mem_free(f);
        }
}

static void deliver_held(struct step *s, struct held *h, struct iteration *it,
                         bool keep, struct ready *r)
{
    struct op_value v = { 0 };

    if (!h->dead)
        v = keep ? value_copy(&h->value) : h->value;
    deliver_all(s, h->node, it, h->dead ? NULL : &v, h->dead, r);
    value_release(&v);
}

/* Begins the next iteration with the values that wait for it. The lock keeps
 * it from ending before all have been delivered. */
static void begin_iteration(struct step *s, struct frame *f, struct ready *r)
{
    struct iteration *it = iteration_new(s, f);
    int count = f->waiting_count;

    it->number = newest(f) + 1;
    f->alive++;
    *ring_at(f, it->number) = it;
    atomic_store_explicit(&f->newest, it->number, memory_order_release);
    for (int i = 0; i < f->constant_count; i++)
        deliver_held(s, &f->constants[i], it, true, r);
    f->waiting_count = 0;
    for (int i = 0; i < count; i++)
        deliver_held(s, &f->waiting[i], it, false, r);
}

static int64_t oldest(struct frame *f)
{
    return newest(f) - f->alive + 1;
}

static bool iteration_over(struct frame *f, const struct iteration *it)
{
    if (atomic_load_explicit(&it->outstanding, memory_order_acquire) ||
        it->inner)
        return false;
    return it->number == 0 ? f->enters_left == 0 : it->number == oldest(f);
}

/* The frame's last iteration is over: Exits that were dead in it. */
static void leave_dead(struct step *s, struct frame *f, struct iteration *it,
                       struct ready *r)
{
    for (int i = 0; i < f->def->node_count; i++)
        if (f->def->nodes[i]->kind == OP_EXIT &&
            atomic_load_explicit(&it->state[i], memory_order_relaxed) ==
                STATE_DEAD)
            deliver_all(s, f->def->nodes[i], f->parent_iter, NULL, true, r);
}

/* Ends iterations as far as it goes; true when the frame has ended with them.
 */
static bool settle_frame(struct step *s, struct frame *f, struct ready *r)
{
    while (f->alive) {
        struct iteration *it = *ring_at(f, oldest(f));

        if (!iteration_over(f, it))
            return false;
        if (f->alive == 1 && !f->waiting_count)
            leave_dead(s, f, it, r);
        *ring_at(f, it->number) = NULL;
        f->alive--;
        iteration_release(it, f->def);
        iteration_spare(s, it);
        if (f->waiting_count)
            begin_iteration(s, f, r);
    }
    return true;
}

/* The same from this frame outward. */
static void settle(struct step *s, struct frame *f, struct ready *r)
{
    while (f->parent && settle_frame(s, f, r)) {
        struct iteration *up = f->parent_iter;
        struct frame **at;

        for (at = &up->children; *at != f; at = &(*at)->sibling)
            ;
        *at = f->sibling;
        up->inner--;
        close_frame(s, f);
        f = up->frame;
    }
}

static void enter(struct step *s, const struct plan_node *n,
                  struct iteration *iter, struct op_value *outs, bool dead,
                  struct ready *r)
{
    struct frame *f = open_frame(s, iter, n->out_frame);

    if (n->constant_enter) {
        struct held *h =
            MEM_PUSH(f->constants, f->constant_count, f->constant_room);

        *h = (struct held){ .node = n, .dead = dead };
        if (!dead)
            value_move(&h->value, &outs[0]);
        for (int64_t i = oldest(f); i <= newest(f); i++)
            deliver_held(s, h, *ring_at(f, i), true, r);
    } else {
        deliver_all(s, n, *ring_at(f, 0), outs, dead, r);
    }
    f->enters_left--;
    settle(s, f, r);
}

/* To the iteration after, which has begun, or begins with it. */
static void next_iteration(struct step *s, const struct plan_node *n,
                           struct iteration *iter, struct op_value *outs,
                           struct ready *r)
{
    struct frame *f = iter->frame;
    struct held *h;

    if (iter->number < newest(f)) { /* invariant 5 */
        deliver_all(s, n, *ring_at(f, iter->number + 1), outs, false, r);
        return;
    }
    pthread_mutex_lock(&s->frame_lock);
    if (iter->number < newest(f)) {
        deliver_all(s, n, *ring_at(f, iter->number + 1), outs, false, r);
    } else {
        h = MEM_PUSH(f->waiting, f->waiting_count, f->waiting_room);
        *h = (struct held){ .node = n };
        value_move(&h->value, &outs[0]);
        if (f->alive < f->def->parallel)
            begin_iteration(s, f, r);
    }
    pthread_mutex_unlock(&s->frame_lock);
}

void frame_propagate(struct step *s, const struct plan_node *n,
                     struct iteration *iter, struct op_value *outs, bool dead,
                     struct ready *r)
{
    r->current = iter;
    r->gained = 0;
    switch (n->kind) {
    case OP_ENTER:
        pthread_mutex_lock(&s->frame_lock);
        enter(s, n, iter, outs, dead, r);
        pthread_mutex_unlock(&s->frame_lock);
        break;
    case OP_EXIT:
        if (dead) { /* settled with the frame, if this is its last iteration */
            atomic_store_explicit(&iter->state[n->index], STATE_DEAD,
                                  memory_order_relaxed);
            break;
        }
        pthread_mutex_lock(&s->frame_lock);
        deliver_all(s, n, iter->frame->parent_iter, outs, false, r);
        pthread_mutex_unlock(&s->frame_lock);
        break;
    case OP_NEXT_ITERATION:
        if (!dead) /* else it is where the loop ends */
            next_iteration(s, n, iter, outs, r);
        break;
    default:
        deliver_all(s, n, iter, outs, dead, r);
    }
}

void frame_node_done(struct step *s, struct iteration *iter, struct ready *r)
{
    int change = (r->current == iter ? r->gained : 0) - 1, left;

    r->current = NULL;
    if (!iter->frame->parent || !change)
        return;
    if (change > 0) {
        atomic_fetch_add_explicit(&iter->outstanding, change,
                                  memory_order_relaxed);
        return;
    }
    left = atomic_load_explicit(&iter->outstanding, memory_order_relaxed);
    while (left > 1)
        if (atomic_compare_exchange_weak_explicit(
                &iter->outstanding, &left, left - 1, memory_order_acq_rel,
                memory_order_relaxed))
            return;
    pthread_mutex_lock(&s->frame_lock); /* invariant 4 */
    if (atomic_fetch_sub_explicit(&iter->outstanding, 1,
                                  memory_order_acq_rel) == 1 &&
        !atomic_load(&s->failed))
        settle(s, iter->frame, r);
    pthread_mutex_unlock(&s->frame_lock);
}

static void close_children(struct step *s, struct iteration *it)
{
    while (it->children) {
        struct frame *f = it->children;

        it->children = f->sibling;
        for (int i = 0; i <= f->def->parallel; i++)
            if (f->ring[i]) {
                close_children(s, f->ring[i]);
                iteration_release(f->ring[i], f->def);
                iteration_spare(s, f->ring[i]);
                f->ring[i] = NULL;
            }
        close_frame(s, f);
    }
}

void frame_close_all(struct step *s)
{
    close_children(s, s->root_iter);
}
