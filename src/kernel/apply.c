/*
 * How an optimizer's op runs: finds its variables, checks everything, takes
 * the locks, and lets the loop of its formula do the work.
 *
 * Whole variables: the new values go where variable_prepare() says, and are
 * published when all of them are complete. Rows: in place, in their order.
 */
#include "kernel/apply.h"

#include <string.h>

#include "kernel/narrow.h"
#include "kernel/real.h"
#include "kernel/update.h"
#include "op/spec.h"

/* Nanoseconds for one element of one argument, as memory gives them. */
#define ELEMENT_NS 0.15

struct apply_state {
    int vars;    /* the first inputs */
    int grad;    /* the input that is the gradient */
    int indices; /* the one behind it; -1: a dense op */
    int count;   /* of inputs */
    bool flag;   /* the op's own attribute */
    bool strict; /* TensorFlow looks at the values of the numbers too */
    const struct spec_arg *args;
};

/* Where argument i of the list is among the inputs. */
static int input_of(const struct apply_state *s, int i)
{
    return i + (s->indices >= 0 && i >= s->indices);
}

static const char *const flags[] = { "use_nesterov", "update_slots",
                                     "multiply_linear_by_lr" };

enum mst_code apply_init(struct op_node *n, struct status *st)
{
    const struct op_spec *spec = spec_of(n->def);
    struct apply_state *s = ARENA_NEW(n->arena, struct apply_state);

    (void)st;
    CHECK(spec->in_count <= APPLY_ARGS_MAX);
    s->args = spec->in;
    s->count = spec->in_count;
    s->indices = -1;
    for (int i = 0; i < s->count; i++) {
        const struct spec_arg *arg = &s->args[i];

        if (arg->ref || arg->dtype == DT_RESOURCE)
            s->vars++;
        else if (!strcmp(arg->name, "grad") || !strcmp(arg->name, "delta"))
            s->grad = i;
        else if (!strcmp(arg->name, "indices"))
            s->indices = i;
    }
    for (size_t i = 0; i < COUNT(flags); i++)
        if (op_attr(n, flags[i]))
            s->flag = op_attr_bool(n, flags[i]);
    s->strict = strstr(n->def->name, "ProximalAdagrad") ||
                (s->indices >= 0 && strstr(n->def->name, "Ftrl"));
    n->state = s;
    return MST_OK;
}

/* ---- checks ---- */

/* A scalar, and for strict ops one that makes sense. */
static enum mst_code check_number(struct op_ctx *c, int i)
{
    const struct apply_state *s = c->node->state;
    const struct tensor *t = op_in(c, i);
    const char *name = s->args[i].name, *what = "";
    char text[SHAPE_TEXT_MAX];
    bool good = t->ndim == 0;

    if (s->strict) {
        bool lr = !strcmp(name, "lr"), power = !strcmp(name, "lr_power");

        what = lr ? "positive " : power ? "non-positive " : "non-negative ";
        good = good && (lr      ? real_load(t, 0) > 0
                        : power ? real_load(t, 0) <= 0
                                : real_load(t, 0) >= 0);
    }
    if (good)
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT, "%s%s is not a %sscalar: %s",
                   strcmp(name, "l2_shrinkage") ? name : "l2 shrinkage",
                   name[0] == 'l' && (name[1] == '1' || name[1] == '2')
                       ? " regularization strength"
                       : "",
                   what, tensor_shape_text(t, text));
}

static enum mst_code check_same(struct op_ctx *c, const struct tensor *var,
                                const struct tensor *other, int i)
{
    const struct apply_state *s = c->node->state;
    char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];

    if (tensor_same_shape(var, other))
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "var and %s do not have the same shape%s %s",
                   s->args[i].name, tensor_shape_text(var, a),
                   tensor_shape_text(other, b));
}

static enum mst_code check_sparse(struct op_ctx *c, const struct tensor *var)
{
    const struct apply_state *s = c->node->state;
    const struct tensor *grad = op_in(c, s->grad), *ix = op_in(c, s->indices);

    if (var->ndim < 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "var must be at least 1 dimensional");
    if (ix->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "indices must be one-dimensional");
    for (int d = 1; d < var->ndim; d++)
        if (d >= grad->ndim || var->dims[d] != grad->dims[d])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "var and grad must match in dimension %d", d);
    if (grad->ndim != var->ndim || grad->dims[0] != ix->dims[0])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "grad must be the same size as indices in the first "
                       "dimension.");
    return MST_OK;
}

/* Everything but the indices; the variables are locked. */
static enum mst_code check(struct op_ctx *c, struct variable *const *v)
{
    const struct apply_state *s = c->node->state;
    enum mst_code rc = MST_OK;

    for (int i = 0; i < s->vars && !rc; i++)
        rc = update_check(c, v[i], s->grad,
                          "Type of the variable and of its gradient do not "
                          "match");
    for (int i = s->vars; i < s->count && !rc; i++)
        if (i != s->grad && i != s->indices)
            rc = check_number(c, i);
    for (int i = 1; i < s->vars && !rc; i++)
        rc = check_same(c, &v[0]->t, &v[i]->t, i);
    if (rc)
        return rc;
    if (s->indices >= 0)
        return check_sparse(c, &v[0]->t);
    return check_same(c, &v[0]->t, op_in(c, s->grad), s->grad);
}

/* ---- running ---- */

/* One run: what the loop gets, and how. */
struct job {
    const struct apply_state *s;
    struct apply_args args;
    apply_fn *loop;
    enum dtype type;
    float numbers[APPLY_ARGS_MAX]; /* of narrow types, widened */
};

/* The loop for float, over pieces that stay in the first cache. */
static void narrow_span(const struct job *j, int64_t to, int64_t from,
                        int64_t n)
{
    float piece[VARIABLE_LOCK_MAX + 1][NARROW_PIECE];
    const struct apply_state *s = j->s;
    struct apply_args a = j->args;
    const uint16_t *grad = j->args.in[s->grad];

    a.in[s->grad] = piece[s->vars];
    for (int64_t at = 0, m; at < n; at += m) {
        m = MIN(n - at, NARROW_PIECE);
        narrow_load(j->type, piece[s->vars], grad + from + at, m);
        for (int i = 0; i < s->vars; i++) {
            a.in[i] = a.out[i] = piece[i];
            narrow_load(j->type, piece[i],
                        (const uint16_t *)j->args.in[i] + to + at, m);
        }
        j->loop(&a, &(struct rows_span){ 0, 0 }, 1, m);
        for (int i = 0; i < s->vars; i++)
            narrow_store(j->type, (uint16_t *)j->args.out[i] + to + at,
                         piece[i], m);
    }
}

static void run_spans(const struct job *j, const struct rows_span *spans,
                      int64_t count, int64_t n)
{
    if (!narrow_is(j->type))
        j->loop(&j->args, spans, count, n);
    else
        for (int64_t k = 0; k < count; k++)
            narrow_span(j, spans[k].at, spans[k].from, n);
}

static void run_range(void *p, int64_t begin, int64_t end)
{
    run_spans(p, &(struct rows_span){ begin, begin }, 1, end - begin);
}

static enum mst_code run_dense(struct op_ctx *c, struct variable *const *v,
                               struct job *j)
{
    const struct apply_state *s = j->s;
    struct tensor fresh[VARIABLE_LOCK_MAX] = { 0 };
    enum mst_code rc = MST_OK;

    for (int i = 0; i < s->vars && !rc; i++) {
        rc = variable_prepare(v[i], &fresh[i], c->st);
        j->args.in[i] = v[i]->t.data;
        j->args.out[i] = fresh[i].data;
    }
    if (!rc)
        op_for(c, v[0]->t.count, ELEMENT_NS * (2 * s->vars + 1), run_range, j);
    for (int i = 0; i < s->vars; i++) {
        if (rc)
            tensor_unref(&fresh[i]);
        else
            variable_publish(v[i], &fresh[i]);
    }
    return rc;
}

static void run_part(void *p, const struct rows *part)
{
    struct rows_span spans[ROWS_SOME];
    int64_t next = 0, n;

    while ((n = rows_some(part, &next, spans)))
        run_spans(p, spans, n, part->size);
}

static enum mst_code bad_index(struct op_ctx *c, const struct rows *r,
                               int64_t bad)
{
    const struct apply_state *s = c->node->state;

    if (strstr(c->node->def->name, "Keras"))
        return rows_fail(c, r, op_in(c, s->indices), bad);
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "Index %ld at offset %ld in indices is out of range",
                   (long)rows_number(r, bad), (long)bad);
}

static enum mst_code run_sparse(struct op_ctx *c, struct variable *const *v,
                                struct job *j)
{
    const struct apply_state *s = j->s;
    struct rows rows;
    enum mst_code rc = MST_OK;
    int64_t bad;

    rows_init(&rows, op_in(c, s->indices), 1, v[0]->t.ndim, v[0]->t.dims);
    bad = rows_bad(&rows);
    if (bad >= 0)
        return bad_index(c, &rows, bad);
    for (int i = 0; i < s->vars && !rc; i++)
        rc = variable_prepare_rows(v[i], c->st);
    if (rc)
        return rc;
    for (int i = 0; i < s->vars; i++)
        j->args.in[i] = j->args.out[i] = v[i]->t.data;
    rows_each(c, &rows, ELEMENT_NS * (2 * s->vars + 1), run_part, j);
    return MST_OK;
}

/* The gradient and the numbers; the variables follow under their locks. */
static void fill_inputs(const struct op_ctx *c, struct job *j)
{
    const struct apply_state *s = j->s;

    for (int i = s->vars; i < s->count - (s->indices >= 0); i++) {
        const struct tensor *t = op_in(c, input_of(s, i));

        j->args.in[i] = t->data;
        if (i == s->grad || !narrow_is((enum dtype)t->dtype) || t->ndim)
            continue;
        narrow_load((enum dtype)t->dtype, &j->numbers[i], t->data, 1);
        j->args.in[i] = &j->numbers[i];
    }
}

enum mst_code apply_run(struct op_ctx *c, apply_fn *loop)
{
    const struct apply_state *s = c->node->state;
    struct variable *v[VARIABLE_LOCK_MAX];
    struct job j = { .s = s, .args.flag = s->flag, .loop = loop };
    enum mst_code rc;

    for (int i = 0; i < s->vars; i++) {
        rc = update_variable(c, i, &v[i]);
        if (rc == MST_NOT_FOUND)
            return op_fail(c, MST_INTERNAL, "Invalid variable reference.");
        if (rc)
            return rc;
    }
    j.type = (enum dtype)op_in(c, s->grad)->dtype;
    fill_inputs(c, &j);
    variable_lock_all(v, s->vars);
    rc = check(c, v);
    if (!rc)
        rc = s->indices >= 0 ? run_sparse(c, v, &j) : run_dense(c, v, &j);
    variable_unlock_all(v, s->vars);
    if (!rc && c->node->out_count)
        op_out_ref(c, 0, 0);
    return rc;
}
