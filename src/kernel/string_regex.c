/*
 * Strings against patterns: RegexFullMatch, RegexReplace, and their versions
 * whose pattern is an attribute and compiled once.
 */
#include <string.h>

#include "kernel/regex.h"
#include "kernel/text.h"
#include "op/op.h"

struct pattern {
    struct regex *regex;
    struct attr_text rewrite;
    bool global;
};

static enum mst_code compile(const char *text, size_t len, struct regex **ret,
                             struct status *st)
{
    struct status why = STATUS_INIT;
    enum mst_code rc = regex_new(text ? text : "", len, ret, &why);

    return rc ? status_set(st, rc, "Invalid pattern: %.*s, error: %.1000s",
                           (int)MIN(len, 500), text ? text : "", why.msg)
              : MST_OK;
}

/* A scalar input. */
static enum mst_code scalar(struct op_ctx *c, int i, const char *name,
                            struct attr_text *ret)
{
    const struct tensor *t = op_in(c, i);
    char text[SHAPE_TEXT_MAX];

    if (t->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "%s must be scalar, but received %s", name,
                       tensor_shape_text(t, text));
    ret->data = tensor_str(t, 0)->data ? tensor_str(t, 0)->data : "";
    ret->len = tensor_str(t, 0)->len;
    return MST_OK;
}

static const char *bytes(const struct str *s)
{
    return s->data ? s->data : "";
}

/* ---- match ---- */

static enum mst_code match(struct op_ctx *c, const struct regex *re)
{
    const struct tensor *in = op_in(c, 0);
    struct regex_run *m;
    enum mst_code rc = op_out_like(c, 0, in);

    if (rc)
        return rc;
    m = regex_run_new(re);
    for (int64_t i = 0; i < in->count; i++) {
        const struct str *s = tensor_str(in, i);

        TENSOR_DATA(op_out(c, 0), bool)
        [i] = regex_match_all(m, bytes(s), s->len);
    }
    regex_run_free(m);
    return MST_OK;
}

static enum mst_code static_regex_full_match(struct op_ctx *c)
{
    const struct pattern *p = c->node->state;

    return match(c, p->regex);
}

static enum mst_code regex_full_match(struct op_ctx *c)
{
    struct regex *re = NULL;
    struct attr_text pattern;
    enum mst_code rc = scalar(c, 1, "Pattern", &pattern);

    if (!rc)
        rc = compile(pattern.data, pattern.len, &re, c->st);
    if (!rc)
        rc = match(c, re);
    regex_free(re);
    return rc;
}

/* ---- replace ---- */

/* The highest group that the rewrite names. */
static int rewrite_groups(const struct attr_text *rewrite)
{
    int max = 0;

    for (size_t i = 0; i + 1 < rewrite->len; i++)
        if (rewrite->data[i] == '\\') {
            char c = rewrite->data[++i];

            if (c >= '0' && c <= '9')
                max = MAX(max, c - '0');
        }
    return max;
}

/* False at an escape that means nothing; what came before stays. */
static bool add_rewrite(struct text *t, const struct attr_text *rewrite,
                        const char *in, const int64_t *span)
{
    for (size_t i = 0; i < rewrite->len; i++) {
        char c = rewrite->data[i];

        if (c != '\\') {
            text_add(t, &c, 1);
            continue;
        }
        c = ++i < rewrite->len ? rewrite->data[i] : '\0';
        if (c >= '0' && c <= '9') {
            const int64_t *s = span + 2 * (c - '0');

            if (s[0] >= 0 && s[1] > s[0])
                text_add(t, in + s[0], (size_t)(s[1] - s[0]));
        } else if (c == '\\') {
            text_add(t, &c, 1);
        } else {
            return false;
        }
    }
    return true;
}

/* Every match, but an empty one right after another. */
static void replace_all(const struct pattern *p, struct regex_run *m,
                        const char *in, size_t len, int groups, struct text *t)
{
    int64_t span[20], last = -1;
    size_t at = 0;

    while (at <= len && regex_find(m, in, len, at, span, groups)) {
        int32_t rune;

        text_add(t, in + at, (size_t)span[0] - at);
        if (span[0] == last && span[1] == span[0]) {
            size_t n =
                at < len ? (size_t)regex_rune(in + at, len - at, &rune) : 0;

            text_add(t, in + at, n);
            at += MAX(n, 1);
            continue;
        }
        add_rewrite(t, &p->rewrite, in, span);
        at = (size_t)span[1];
        last = span[1];
    }
    if (at < len)
        text_add(t, in + at, len - at);
}

static void replace_one(const struct pattern *p, struct regex_run *m,
                        const char *in, size_t len, int groups, struct text *t)
{
    int64_t span[20];

    if (regex_find(m, in, len, 0, span, groups)) {
        text_add(t, in, (size_t)span[0]);
        if (add_rewrite(t, &p->rewrite, in, span)) {
            text_add(t, in + span[1], len - (size_t)span[1]);
            return;
        }
        t->len = 0; /* the rewrite is bad: as it was */
    }
    text_add(t, in, len);
}

static enum mst_code replace(struct op_ctx *c, const struct pattern *p)
{
    const struct tensor *in = op_in(c, 0);
    int groups = rewrite_groups(&p->rewrite);
    struct regex_run *m;
    enum mst_code rc = op_out_like(c, 0, in);

    if (rc)
        return rc;
    if (groups > regex_groups(p->regex)) { /* nothing is replaced then */
        tensor_copy_elems(op_out(c, 0), 0, in, 0, in->count);
        return MST_OK;
    }
    m = regex_run_new(p->regex);
    for (int64_t i = 0; i < in->count; i++) {
        const struct str *s = tensor_str(in, i);
        struct text t = { 0 };

        (p->global ? replace_all : replace_one)(p, m, bytes(s), s->len,
                                                groups + 1, &t);
        text_give(&t, tensor_str(op_out(c, 0), i));
    }
    regex_run_free(m);
    return MST_OK;
}

static enum mst_code static_regex_replace(struct op_ctx *c)
{
    return replace(c, c->node->state);
}

static enum mst_code regex_replace(struct op_ctx *c)
{
    struct pattern p = { .global = c->node->state != NULL };
    struct attr_text pattern;
    enum mst_code rc = scalar(c, 1, "Pattern", &pattern);

    if (!rc)
        rc = scalar(c, 2, "Rewrite", &p.rewrite);
    if (!rc)
        rc = compile(pattern.data, pattern.len, &p.regex, c->st);
    if (!rc)
        rc = replace(c, &p);
    regex_free(p.regex);
    return rc;
}

/* ---- records ---- */

static enum mst_code static_init(struct op_node *n, struct status *st)
{
    struct attr_text pattern = op_attr_str(n, "pattern");
    struct pattern *p = ARENA_NEW(n->arena, struct pattern);

    if (op_attr(n, "rewrite")) {
        p->rewrite = op_attr_str(n, "rewrite");
        p->global = op_attr_bool(n, "replace_global");
    }
    n->state = p;
    return compile(pattern.data, pattern.len, &p->regex, st);
}

static void static_done(struct op_node *n)
{
    struct pattern *p = n->state;

    regex_free(p->regex);
}

static enum mst_code replace_init(struct op_node *n, struct status *st)
{
    (void)st;
    if (op_attr_bool(n, "replace_global")) /* only whether it is set */
        n->state = n;
    return MST_OK;
}

const struct op_def def_static_regex_full_match = {
    .name = "StaticRegexFullMatch",
    .in = "input: string",
    .out = "output: bool",
    .attr = "pattern: string",
    .init = static_init,
    .done = static_done,
    .kernel = (const struct op_kernel[]){ { DT_ANY, static_regex_full_match },
                                          { 0 } },
};

const struct op_def def_regex_full_match = {
    .name = "RegexFullMatch",
    .in = "input: string, pattern: string",
    .out = "output: bool",
    .kernel = (const struct op_kernel[]){ { DT_ANY, regex_full_match }, { 0 } },
};

const struct op_def def_static_regex_replace = {
    .name = "StaticRegexReplace",
    .in = "input: string",
    .out = "output: string",
    .attr = "pattern: string; rewrite: string; replace_global: bool = true",
    .init = static_init,
    .done = static_done,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, static_regex_replace }, { 0 } },
};

const struct op_def def_regex_replace = {
    .name = "RegexReplace",
    .in = "input: string, pattern: string, rewrite: string",
    .out = "output: string",
    .attr = "replace_global: bool = true",
    .init = replace_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, regex_replace }, { 0 } },
};
