/*
 * A ragged tensor as a dense one: RaggedTensorToTensor. Rows are filled up
 * with a default value and cut where the wanted shape is shorter.
 *
 * Level by level, from the outermost, the place in the output of each row is
 * computed from its parent's: -1 for what is cut. A level is given by row
 * splits, or by the number of the parent for each row.
 */
#include "base/mem.h"
#include "kernel/args.h"
#include "kernel/types.h"

enum partition { FIRST_DIM_SIZE, VALUE_ROWIDS, ROW_SPLITS };

struct partitions {
    int count;
    enum partition type[];
};

struct dense {
    const struct tensor *values;
    int first_level, levels; /* inputs 3 + first_level, ... */
    const enum partition *type;
    int64_t first_dim;
    struct shape want, out;
    int64_t step[TENSOR_RANK_MAX + 1]; /* elements of the output */
    int64_t *place;                    /* of each row of the level */
    int64_t place_count;
};

static enum mst_code partitions_init(struct op_node *n, struct status *st)
{
    static const char *const names[] = { "FIRST_DIM_SIZE", "VALUE_ROWIDS",
                                         "ROW_SPLITS" };
    const struct attr *a = op_attr(n, "row_partition_types");
    struct partitions *p = arena_alloc(
        n->arena, sizeof(*p) + (size_t)a->count * sizeof(p->type[0]));

    for (int i = 0; i < a->count; i++) {
        int k = 0;

        while (k < 3 && strcmp(a->value[i].s.data, names[k]))
            k++;
        if (k == 3)
            return status_set(st, MST_INVALID_ARGUMENT,
                              "Unknown string for partition info type: %s",
                              a->value[i].s.data);
        p->type[p->count++] = (enum partition)k;
    }
    n->state = p;
    return MST_OK;
}

static const struct tensor *level(struct op_ctx *c, const struct dense *r,
                                  int i)
{
    return op_in(c, 3 + r->first_level + i);
}

/* ---- shapes ---- */

static enum mst_code read_want(struct op_ctx *c, struct dense *r)
{
    const struct tensor *t = op_in(c, 0);

    r->want.ndim = -1;
    if (!t->ndim) {
        if (tensor_int(t, 0) != -1)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "The only valid scalar shape tensor is the fully "
                           "unknown shape specified as -1.");
        return MST_OK;
    }
    if (t->ndim > 1 || t->count > TENSOR_RANK_MAX)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "shape must be a vector of at most %d dimensions",
                       TENSOR_RANK_MAX);
    r->want.ndim = (int)t->count;
    for (int d = 0; d < r->want.ndim; d++) {
        r->want.dims[d] = tensor_int(t, d);
        if (r->want.dims[d] < -1)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Dimension %lld must be >= -1",
                           (long long)r->want.dims[d]);
    }
    return MST_OK;
}

static enum mst_code check_want(struct op_ctx *c, struct dense *r)
{
    int ndim = r->levels + r->values->ndim;
    char text[SHAPE_TEXT_MAX];

    if (ndim > TENSOR_RANK_MAX)
        return op_fail(c, MST_UNIMPLEMENTED,
                       "Tensors of rank %d are not supported, only up to %d",
                       ndim, TENSOR_RANK_MAX);
    if (r->want.ndim < 0) {
        r->want.ndim = ndim;
        for (int d = 0; d < ndim; d++)
            r->want.dims[d] = -1;
    }
    shape_text(r->want.ndim, r->want.dims, text);
    if (r->want.ndim != ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "rt_input.shape and shape=%s are incompatible: "
                       "rt_input.rank = %d but shape.rank = %d",
                       text, ndim, r->want.ndim);
    for (int d = 1; d < r->values->ndim; d++) {
        int at = r->levels + d;

        if (r->want.dims[at] >= 0 && r->want.dims[at] != r->values->dims[d])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "rt_input.shape and shape=%s are incompatible: "
                           "rt_input.shape[%d] = %lld but shape[%d] = %lld",
                           text, at, (long long)r->values->dims[d], at,
                           (long long)r->want.dims[at]);
    }
    return MST_OK;
}

static enum mst_code check_default(struct op_ctx *c, const struct dense *r)
{
    const struct tensor *t = op_in(c, 2);
    char x[SHAPE_TEXT_MAX], y[SHAPE_TEXT_MAX];

    if (t->ndim >= MAX(r->values->ndim, 1))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "default_value.shape=%s and rt_input.flat_values.shape="
                       "%s are incompatible: default_value.rank = %d  must be "
                       "less than rt_input.flat_values.rank = %d",
                       tensor_shape_text(t, x), tensor_shape_text(r->values, y),
                       t->ndim, r->values->ndim);
    for (int d = 1; d <= t->ndim; d++) {
        int64_t a = t->dims[t->ndim - d];
        int64_t b = r->values->dims[r->values->ndim - d];

        if (a != 1 && a != b)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "default_value.shape=%s and "
                           "rt_input.flat_values.shape=%s are incompatible: "
                           "default_value.shape[%d] = %lld but "
                           "rt_input.flat_values.shape[%d] = %lld",
                           tensor_shape_text(t, x),
                           tensor_shape_text(r->values, y), -d, (long long)a,
                           -d, (long long)b);
    }
    return MST_OK;
}

/* The longest row of a level. */
static int64_t width(struct op_ctx *c, const struct dense *r, int i)
{
    const struct tensor *t = level(c, r, i);
    int64_t most = 0, run = 0;

    if (r->type[r->first_level + i] == ROW_SPLITS) {
        for (int64_t k = 1; k < t->count; k++) {
            __int128 n = (__int128)tensor_int(t, k) - tensor_int(t, k - 1);

            most = MAX(most, (int64_t)MIN(n, INT64_MAX));
        }
        return most;
    }
    for (int64_t k = 0; k < t->count; k++) {
        run = k && tensor_int(t, k) == tensor_int(t, k - 1) ? run + 1 : 1;
        most = MAX(most, run);
    }
    return most;
}

static enum mst_code read_shape(struct op_ctx *c, struct dense *r)
{
    enum mst_code rc;

    r->out.ndim = r->want.ndim;
    for (int d = 0; d < r->out.ndim; d++)
        r->out.dims[d] = r->want.dims[d] >= 0 ? r->want.dims[d]
                         : d == 0             ? r->first_dim
                         : d <= r->levels     ? width(c, r, d - 1)
                                              : r->values->dims[d - r->levels];
    rc = args_check_dims(c, r->out.ndim, r->out.dims);
    if (rc)
        return rc;
    r->step[r->out.ndim] = 1;
    for (int d = r->out.ndim - 1; d >= 0; d--)
        r->step[d] = r->step[d + 1] * r->out.dims[d];
    return MST_OK;
}

static enum mst_code read_first(struct op_ctx *c, struct dense *r)
{
    const struct partitions *p = c->node->state;
    const struct tensor *first;

    if (p->count != c->node->in_count - 3 || !p->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "There are %d row_partition_types for %d tensors",
                       p->count, c->node->in_count - 3);
    r->type = p->type;
    first = op_in(c, 3);
    if (!first->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Invalid first partition input. Tensor requires at "
                       "least one element.");
    for (int i = 1; i < p->count; i++)
        if (p->type[i] == FIRST_DIM_SIZE)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Cannot handle partition type FIRST_DIM_SIZE");
    if (p->type[0] == VALUE_ROWIDS)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Cannot handle VALUE_ROWIDS in first dimension.");
    r->first_level = p->type[0] == FIRST_DIM_SIZE;
    r->levels = p->count - r->first_level;
    r->first_dim = r->first_level ? tensor_int(first, 0) : first->count - 1;
    if (r->first_dim < 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The first dimension must not be negative, got %lld",
                       (long long)r->first_dim);
    return MST_OK;
}

/* ---- places ---- */

static enum mst_code places_new(struct op_ctx *c, int64_t n,
                                struct tensor *room)
{
    enum mst_code rc = tensor_new(room, DT_INT64, 1, &n, c->st);

    return rc;
}

static int64_t place_in(const struct dense *r, int d, int64_t parent,
                        int64_t at)
{
    return parent < 0 || at >= r->out.dims[d] ? -1
                                              : parent + at * r->step[d + 1];
}

static enum mst_code bad_split(struct op_ctx *c)
{
    return op_fail(c, MST_INVALID_ARGUMENT, "Invalid row split size.");
}

static enum mst_code places_split(struct op_ctx *c, struct dense *r, int i,
                                  int64_t most, struct tensor *room)
{
    const struct tensor *t = level(c, r, i);
    int64_t total = 0, *to;
    enum mst_code rc;

    if (t->count - 1 != r->place_count)
        return bad_split(c);
    for (int64_t k = 1; k < t->count; k++) {
        int64_t n;

        if (__builtin_sub_overflow(tensor_int(t, k), tensor_int(t, k - 1),
                                   &n) ||
            n < 0 || __builtin_add_overflow(total, n, &total))
            return bad_split(c);
    }
    if (total != tensor_int(t, t->count - 1) || total > most)
        return bad_split(c);
    rc = places_new(c, total, room);
    if (rc)
        return rc;
    to = room->data;
    for (int64_t k = 1; k < t->count; k++)
        for (int64_t n = 0; n < tensor_int(t, k) - tensor_int(t, k - 1); n++)
            *to++ = place_in(r, i + 1, r->place[k - 1], n);
    return MST_OK;
}

static enum mst_code places_ids(struct op_ctx *c, struct dense *r, int i,
                                int64_t most, struct tensor *room)
{
    const struct tensor *t = level(c, r, i);
    int64_t at = 0, *to;
    enum mst_code rc;

    if (t->count > most)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "There are more value_rowids than values.");
    rc = places_new(c, t->count, room);
    if (rc)
        return rc;
    to = room->data;
    for (int64_t k = 0; k < t->count; k++) {
        int64_t id = tensor_int(t, k);

        if (id < 0 || id >= r->place_count)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Got %s_value_rowid=%lld which is not less than "
                           "%lld",
                           k ? "next" : "current", (long long)id,
                           (long long)r->place_count);
        at = k && id == tensor_int(t, k - 1) ? at + 1 : 0;
        to[k] = place_in(r, i + 1, r->place[id], at);
    }
    return MST_OK;
}

/* How many rows the level below i can have: more cannot be referred to. */
static int64_t rows_below(struct op_ctx *c, const struct dense *r, int i)
{
    if (i + 1 == r->levels)
        return r->values->ndim ? r->values->dims[0] : 0;
    if (r->type[r->first_level + i + 1] == ROW_SPLITS)
        return level(c, r, i + 1)->count - 1;
    return INT64_MAX;
}

static enum mst_code places(struct op_ctx *c, struct dense *r,
                            struct tensor *room)
{
    enum mst_code rc = places_new(c, r->first_dim, room);

    if (rc)
        return rc;
    r->place = room->data;
    r->place_count = r->first_dim;
    for (int64_t i = 0; i < r->first_dim; i++)
        r->place[i] = i < r->out.dims[0] ? i * r->step[1] : -1;
    for (int i = 0; i < r->levels && !rc; i++) {
        struct tensor next = { 0 };
        int64_t most = rows_below(c, r, i);

        rc = r->type[r->first_level + i] == ROW_SPLITS
                 ? places_split(c, r, i, most, &next)
                 : places_ids(c, r, i, most, &next);
        tensor_unref(room);
        *room = next;
        r->place = room->data;
        r->place_count = room->count;
    }
    return rc;
}

/* ---- values ---- */

/* The default value where no row will come: everywhere, at first. */
static void fill(struct op_ctx *c, const struct dense *r, int64_t inner)
{
    const struct tensor *t = op_in(c, 2);
    struct tensor *out = op_out(c, 0);

    for (int64_t at = 0; at < out->count; at++) {
        int64_t rest = at % inner, from = 0, step = 1;

        for (int d = 1; d <= t->ndim; d++) {
            int64_t dim = r->values->dims[r->values->ndim - d];

            if (t->dims[t->ndim - d] != 1)
                from += rest % dim * step;
            step *= t->dims[t->ndim - d];
            rest /= dim;
        }
        tensor_copy_elems(out, at, t, from, 1);
    }
}

static enum mst_code ragged_to_tensor(struct op_ctx *c)
{
    struct dense r = { .values = op_in(c, 1) };
    struct tensor room = { 0 };
    int64_t inner = 1;
    enum mst_code rc = read_first(c, &r);

    if (!rc)
        rc = read_want(c, &r);
    if (!rc)
        rc = check_want(c, &r);
    if (!rc)
        rc = check_default(c, &r);
    if (!rc)
        rc = read_shape(c, &r);
    if (!rc)
        rc = places(c, &r, &room);
    if (!rc)
        rc = op_out_new(c, 0, r.out.ndim, r.out.dims);
    if (!rc) {
        for (int d = 1; d < r.values->ndim; d++)
            inner *= r.values->dims[d];
        fill(c, &r, inner);
        for (int64_t i = 0; i < r.place_count; i++)
            if (r.place[i] >= 0 && op_out(c, 0)->count)
                tensor_copy_elems(op_out(c, 0), r.place[i], r.values, i * inner,
                                  inner);
    }
    tensor_unref(&room);
    return rc;
}

const struct op_def def_ragged_tensor_to_tensor = {
    .name = "RaggedTensorToTensor",
    .in = "shape: Tshape, values: T, default_value: T, "
          "row_partition_tensors: num_row_partition_tensors * Tindex",
    .out = "result: T",
    .attr = "T: type; Tindex: {int64, int32}; Tshape: {int64, int32}; "
            "num_row_partition_tensors: int >= 1; "
            "row_partition_types: list(string)",
    .init = partitions_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, ragged_to_tensor }, { 0 } },
};
