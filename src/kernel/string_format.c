/*
 * StringFormat: a template in which each placeholder becomes a tensor.
 */
#include <string.h>

#include "kernel/summary.h"
#include "op/op.h"

struct format {
    struct attr_text template, placeholder;
    int64_t ends;
    int places;
};

/* The next placeholder in [at, end), or end. */
static const char *next_place(const struct format *f, const char *at,
                              const char *end)
{
    const char *found = f->placeholder.len
                            ? memmem(at, (size_t)(end - at),
                                     f->placeholder.data, f->placeholder.len)
                            : NULL;

    return found ? found : end;
}

static enum mst_code string_format(struct op_ctx *c)
{
    const struct format *f = c->node->state;
    const char *at = f->template.data, *end = at + f->template.len;
    struct text t = { 0 };
    enum mst_code rc = op_out_new(c, 0, 0, NULL);

    if (rc)
        return rc;
    for (int i = 0; i <= f->places; i++) {
        const char *stop = next_place(f, at, end);

        text_add(&t, at, (size_t)(stop - at));
        /* Of no truth values TensorFlow shows not even the brackets. */
        if (i < f->places &&
            (op_in(c, i)->count || op_in(c, i)->dtype != DT_BOOL))
            summary_add(&t, op_in(c, i), f->ends);
        at = stop + f->placeholder.len;
    }
    text_give(&t, tensor_str(op_out(c, 0), 0));
    return MST_OK;
}

static enum mst_code string_format_init(struct op_node *n, struct status *st)
{
    struct format *f = ARENA_NEW(n->arena, struct format);
    const char *at, *end;

    f->template = op_attr_str(n, "template");
    f->placeholder = op_attr_str(n, "placeholder");
    f->ends = op_attr_int(n, "summarize");
    end = f->template.data + f->template.len;
    for (at = next_place(f, f->template.data, end); at < end; f->places++)
        at = next_place(f, at + f->placeholder.len, end);
    if (f->places != n->in_count)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "num placeholders in template and num inputs must "
                          "match: %d vs. %d",
                          f->places, n->in_count);
    n->state = f;
    return MST_OK;
}

const struct op_def def_string_format = {
    .name = "StringFormat",
    .in = "inputs: T",
    .out = "output: string",
    .attr = "T: list(type) >= 0; template: string = '%s'; "
            "placeholder: string = '%s'; summarize: int = 3",
    .init = string_format_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, string_format }, { 0 } },
};
