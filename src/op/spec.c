/*
 * The little language of op records, and the check of nodes against it.
 *
 *   args   = arg { "," arg }
 *   arg    = name ":" [ count "*" ] type | name ":" "Ref(" type ")"
 *   attrs  = attr { ";" attr }
 *   attr   = name ":" kind [ ">=" int ] [ "=" default ]
 *   kind   = "int" … | "list(" kind ")" | "numbertype" … | "{" word, … "}"
 *
 * A word of a set that is quoted makes the attribute a string. Types inside of
 * sets and defaults are spelled as dtype_name() spells them.
 */
#include "op/spec.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"

static pthread_mutex_t specs_lock = PTHREAD_MUTEX_INITIALIZER;
static struct map specs; /* def -> spec, under specs_lock */
static struct arena specs_arena;

struct text {
    const char *at;
    const struct op_def *def;
};

NORETURN static void bad(const struct text *p, const char *what)
{
    char line[256];

    snprintf(line, sizeof(line), "op %s: %s at '%.40s'", p->def->name, what,
             p->at);
    base_panic(__FILE__, __LINE__, line);
}

static void space(struct text *p)
{
    while (isspace((unsigned char)*p->at))
        p->at++;
}

static bool take(struct text *p, const char *token)
{
    size_t n = strlen(token);

    space(p);
    if (strncmp(p->at, token, n))
        return false;
    /* A word ends where a word ends. */
    if (isalpha((unsigned char)token[0]) &&
        (isalnum((unsigned char)p->at[n]) || p->at[n] == '_'))
        return false;
    p->at += n;
    space(p);
    return true;
}

static const char *word(struct text *p)
{
    const char *begin;

    space(p);
    begin = p->at;
    while (isalnum((unsigned char)*p->at) || *p->at == '_')
        p->at++;
    if (p->at == begin)
        bad(p, "a name is missing");
    begin = arena_strn(&specs_arena, begin, (size_t)(p->at - begin));
    space(p);
    return begin;
}

static const struct spec_attr *spec_find(const struct op_spec *s,
                                         const char *name)
{
    for (int i = 0; i < s->attr_count; i++)
        if (!strcmp(s->attr[i].name, name))
            return &s->attr[i];
    return NULL;
}

static void parse_type(struct text *p, const struct op_spec *s,
                       struct spec_arg *a)
{
    const char *name = word(p);

    a->dtype = dtype_by_name(name, strlen(name));
    if (a->dtype == DT_INVALID) {
        if (!spec_find(s, name))
            bad(p, "no such attribute or type");
        a->type_attr = name;
    }
}

static int parse_args(const char *text, const struct op_spec *s,
                      struct spec_arg *args)
{
    struct text p = { text ? text : "", s->def };
    int n = 0;

    space(&p);
    while (*p.at) {
        struct spec_arg *a = &args[n++];
        const char *begin;

        if (n > SPEC_ARGS_MAX)
            bad(&p, "too many arguments");
        a->name = word(&p);
        if (!take(&p, ":"))
            bad(&p, "':' is missing");
        if (take(&p, "Ref")) {
            a->ref = true;
            if (!take(&p, "("))
                bad(&p, "'(' is missing");
            parse_type(&p, s, a);
            if (!take(&p, ")"))
                bad(&p, "')' is missing");
        } else {
            begin = p.at;
            a->number_attr = word(&p);
            if (!take(&p, "*")) {
                p.at = begin;
                a->number_attr = NULL;
            }
            parse_type(&p, s, a);
        }
        if (*p.at && !take(&p, ","))
            bad(&p, "',' is missing");
    }
    return n;
}

/* ---- attributes ---- */

static uint64_t bit(enum dtype dt)
{
    return (uint64_t)1 << dt;
}

static void allow(struct spec_attr *a, enum dtype dt)
{
    a->order[a->allowed_count++] = (uint8_t)dt;
    a->allowed |= bit(dt);
}

/* In TensorFlow's order, which its messages show. */
static bool set_named(struct text *p, struct spec_attr *a)
{
    static const uint8_t number[] = {
        DT_FLOAT,      DT_DOUBLE,    DT_INT32,  DT_UINT8,   DT_INT16,
        DT_INT8,       DT_COMPLEX64, DT_INT64,  DT_QINT8,   DT_QUINT8,
        DT_QINT32,     DT_BFLOAT16,  DT_QINT16, DT_QUINT16, DT_UINT16,
        DT_COMPLEX128, DT_HALF,      DT_UINT32, DT_UINT64,
    };
    bool real = take(p, "realnumbertype");

    if (!real && !take(p, "numbertype"))
        return false;
    for (size_t i = 0; i < COUNT(number); i++) {
        enum dtype dt = (enum dtype)number[i];

        if (dtype_is_float(dt) || dtype_is_int(dt) ||
            (!real && dt != DT_QINT16 && dt != DT_QUINT16))
            allow(a, dt);
    }
    return true;
}

static void parse_set(struct text *p, struct spec_attr *a)
{
    const char **words = NULL;
    int count = 0, room = 0;

    a->kind = ATTR_TYPE;
    while (!take(p, "}")) {
        if (take(p, "'")) {
            const char *begin = p->at;

            while (*p->at && *p->at != '\'')
                p->at++;
            a->kind = ATTR_STRING;
            *MEM_PUSH(words, count, room) =
                arena_strn(&specs_arena, begin, (size_t)(p->at - begin));
            if (!take(p, "'"))
                bad(p, "a quote is missing");
        } else {
            const char *name = word(p);
            enum dtype dt = dtype_by_name(name, strlen(name));

            if (dt == DT_INVALID)
                bad(p, "no such type");
            allow(a, dt);
        }
        (void)take(p, ",");
    }
    if (words) {
        *MEM_PUSH(words, count, room) = NULL;
        a->words =
            arena_copy(&specs_arena, words, (size_t)count * sizeof(*words));
        mem_free(words);
    }
}

static void parse_kind(struct text *p, struct spec_attr *a)
{
    static const struct {
        const char *name;
        enum attr_kind kind;
    } kinds[] = {
        { "string", ATTR_STRING }, { "int", ATTR_INT },
        { "float", ATTR_FLOAT },   { "bool", ATTR_BOOL },
        { "type", ATTR_TYPE },     { "shape", ATTR_SHAPE },
        { "tensor", ATTR_TENSOR }, { "func", ATTR_FUNC },
    };

    if (take(p, "list")) {
        a->list = true;
        if (!take(p, "("))
            bad(p, "'(' is missing");
        parse_kind(p, a);
        if (!take(p, ")"))
            bad(p, "')' is missing");
        return;
    }
    if (take(p, "{")) {
        parse_set(p, a);
        return;
    }
    if (set_named(p, a)) {
        a->kind = ATTR_TYPE;
        return;
    }
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (take(p, kinds[i].name)) {
            a->kind = kinds[i].kind;
            return;
        }
    bad(p, "no such kind of attribute");
}

static void parse_shape(struct text *p, struct attr_value *v)
{
    struct shape *s = ARENA_NEW(&specs_arena, struct shape);

    if (take(p, "unknown")) {
        s->ndim = -1;
    } else {
        if (!take(p, "["))
            bad(p, "a shape is missing");
        while (!take(p, "]")) {
            char *end;

            s->dims[s->ndim++] = strtoll(p->at, &end, 10);
            p->at = end;
            (void)take(p, ",");
        }
    }
    v->shape = s;
}

static void parse_value(struct text *p, const struct spec_attr *a,
                        struct attr_value *v)
{
    const char *name;
    char *end;

    switch (a->kind) {
    case ATTR_STRING:
        space(p);
        if (*p->at != '\'')
            bad(p, "a quote is missing");
        name = ++p->at; /* what follows may be a space */
        while (*p->at && *p->at != '\'')
            p->at++;
        v->s.len = (size_t)(p->at - name);
        v->s.data = arena_strn(&specs_arena, name, v->s.len);
        p->at++;
        break;
    case ATTR_INT:
        v->i = strtoll(p->at, &end, 10);
        p->at = end;
        break;
    case ATTR_FLOAT:
        v->f = strtof(p->at, &end);
        p->at = end;
        break;
    case ATTR_BOOL:
        v->b = take(p, "true");
        if (!v->b && !take(p, "false"))
            bad(p, "true or false is missing");
        break;
    case ATTR_TYPE:
        name = word(p);
        v->type = dtype_by_name(name, strlen(name));
        if (v->type == DT_INVALID)
            bad(p, "no such type");
        break;
    case ATTR_SHAPE:
        parse_shape(p, v);
        break;
    case ATTR_TENSOR: /* the kernel knows it */
        if (!take(p, "none"))
            bad(p, "none is missing");
        break;
    default:
        bad(p, "such an attribute has no default");
    }
}

static void parse_default(struct text *p, struct spec_attr *a)
{
    struct attr_value *values = NULL, one = { 0 };
    int count = 0, room = 0;

    a->has_default = true;
    a->value =
        (struct attr){ .name = a->name, .kind = a->kind, .list = a->list };
    if (a->list) {
        if (!take(p, "["))
            bad(p, "'[' is missing");
        while (!take(p, "]")) {
            parse_value(p, a, &one);
            *MEM_PUSH(values, count, room) = one;
            (void)take(p, ",");
        }
        a->value.value =
            arena_copy(&specs_arena, values, (size_t)count * sizeof(*values));
        a->value.count = count;
        mem_free(values);
        return;
    }
    parse_value(p, a, &one);
    a->value.value = arena_copy(&specs_arena, &one, sizeof(one));
    a->value.count = 1;
}

static void parse_attrs(struct op_spec *s)
{
    struct text p = { s->def->attr ? s->def->attr : "", s->def };

    space(&p);
    while (*p.at) {
        struct spec_attr *a = &s->attr[s->attr_count++];

        if (s->attr_count > SPEC_ATTRS_MAX)
            bad(&p, "too many attributes");
        a->name = word(&p);
        if (!take(&p, ":"))
            bad(&p, "':' is missing");
        parse_kind(&p, a);
        if (take(&p, ">=")) {
            char *end;

            a->has_min = true;
            a->min = strtoll(p.at, &end, 10);
            p.at = end;
        }
        if (take(&p, "="))
            parse_default(&p, a);
        if (*p.at && !take(&p, ";"))
            bad(&p, "';' is missing");
    }
}

const struct op_spec *spec_of(const struct op_def *def)
{
    struct op_spec *s;

    pthread_mutex_lock(&specs_lock);
    s = map_get_num(&specs, (uint64_t)(uintptr_t)def);
    if (!s) {
        s = ARENA_NEW(&specs_arena, struct op_spec);
        s->def = def;
        parse_attrs(s);
        s->in_count = parse_args(def->in, s, s->in);
        s->out_count = parse_args(def->out, s, s->out);
        map_put_num(&specs, (uint64_t)(uintptr_t)def, s);
    }
    pthread_mutex_unlock(&specs_lock);
    return s;
}

/* ---- nodes ---- */

/* "float, double", in the order of the record. */
static void append_allowed(const struct spec_attr *a, struct status *st)
{
    for (int i = 0; i < a->allowed_count; i++)
        status_append(st, "%s%s", i ? ", " : "", dtype_name(a->order[i]));
}

static enum mst_code check_type(const struct spec_attr *a, int dt,
                                const struct op_node *n, struct status *st)
{
    if (!dtype_valid(dtype_base(dt)))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "AttrValue has invalid DataType enum: %d\n\t for "
                          "attr '%s'\n\t; NodeDef: {{node %s}}; Op<name=%s>",
                          dt, a->name, n->name, n->def->name);
    if (!a->allowed || (a->allowed & bit(dtype_base(dt))))
        return MST_OK;
    status_set(st, MST_INVALID_ARGUMENT,
               "Value for attr '%s' of %s is not in the list of allowed "
               "values: ",
               a->name, dtype_name(dt));
    append_allowed(a, st);
    status_append(st, "\n\t; NodeDef: {{node %s}}; Op<name=%s>", n->name,
                  n->def->name);
    return MST_INVALID_ARGUMENT;
}

static enum mst_code check_words(const struct spec_attr *a,
                                 const struct attr_value *v,
                                 const struct op_node *n, struct status *st)
{
    for (int i = 0; a->words[i]; i++)
        if (!strcmp(a->words[i], v->s.data))
            return MST_OK;
    return status_set(
        st, MST_INVALID_ARGUMENT,
        "Value for attr '%s' of \"%.100s\" is not in the list of allowed "
        "values\n\t; NodeDef: {{node %s}}; Op<name=%s>",
        a->name, v->s.data, n->name, n->def->name);
}

static enum mst_code check_attr(const struct spec_attr *a, const struct attr *v,
                                const struct op_node *n, struct status *st)
{
    enum mst_code rc = MST_OK;
    int64_t size = a->list ? v->count : a->kind == ATTR_INT ? v->value->i : 0;

    /* An empty list on the wire does not say of what. */
    if ((v->kind != a->kind && !(a->list && v->list && !v->count)) ||
        v->list != a->list)
        return status_set(
            st, MST_INVALID_ARGUMENT,
            "AttrValue had value with type '%s' when '%s' expected\n\t for "
            "attr '%s'\n\t; NodeDef: {{node %s}}; Op<name=%s>",
            attr_kind_name(v->kind, v->list), attr_kind_name(a->kind, a->list),
            a->name, n->name, n->def->name);
    if (a->has_min && size < a->min)
        return status_set(
            st, MST_INVALID_ARGUMENT,
            a->list ? "Length for attr '%s' of %lld must be at least minimum "
                      "%lld\n\t; NodeDef: {{node %s}}; Op<name=%s>"
                    : "Value for attr '%s' of %lld must be at least minimum "
                      "%lld\n\t; NodeDef: {{node %s}}; Op<name=%s>",
            a->name, (long long)size, (long long)a->min, n->name, n->def->name);
    for (int i = 0; i < v->count && !rc; i++) {
        if (a->kind == ATTR_TYPE)
            rc = check_type(a, v->value[i].type, n, st);
        else if (a->words)
            rc = check_words(a, &v->value[i], n, st);
    }
    return rc;
}

enum mst_code spec_complete_attrs(struct op_node *n, struct status *st)
{
    const struct op_spec *s = spec_of(n->def);
    struct attr *attrs = ARENA_ARRAY(n->arena, struct attr, s->attr_count);

    for (int i = 0; i < s->attr_count; i++) {
        const struct spec_attr *a = &s->attr[i];
        const struct attr *given = attr_find(n->attrs, n->attr_count, a->name);
        enum mst_code rc;

        if (!given && !a->has_default)
            return status_set(
                st, MST_INVALID_ARGUMENT,
                "NodeDef missing attr '%s' from Op<name=%s>; NodeDef: "
                "{{node %s}}",
                a->name, n->def->name, n->name);
        attrs[i] = given ? *given : a->value;
        attrs[i].kind = given && given->count ? given->kind : a->kind;
        rc = check_attr(a, &attrs[i], n, st);
        if (rc)
            return rc;
    }
    n->attrs = attrs;
    n->attr_count = s->attr_count;
    return MST_OK;
}

/* More arguments than this no graph has; a peer may still ask for them. */
#define NODE_ARGS_MAX (1 << 20)

static int64_t arg_length(const struct spec_arg *a, const struct attr *attrs,
                          int attr_count)
{
    const struct attr *type;

    if (a->number_attr)
        return attr_find(attrs, attr_count, a->number_attr)->value->i;
    if (!a->type_attr)
        return 1;
    type = attr_find(attrs, attr_count, a->type_attr);
    return type->list ? type->count : 1;
}

enum mst_code spec_types(const struct op_spec *spec, const struct attr *attrs,
                         int attr_count, const char *node_name,
                         struct arena *arena, bool outputs, int **ret_types,
                         int *ret_count, struct status *st)
{
    const struct spec_arg *args = outputs ? spec->out : spec->in;
    int arg_count = outputs ? spec->out_count : spec->in_count;
    int64_t total = 0, at = 0;
    int *types;

    for (int i = 0; i < arg_count; i++) {
        int64_t n = arg_length(&args[i], attrs, attr_count);

        if (n < 0 || n > NODE_ARGS_MAX || total + n > NODE_ARGS_MAX)
            return status_set(st, MST_INVALID_ARGUMENT,
                              "Node '%s' has %lld values for argument '%s'",
                              node_name, (long long)n, args[i].name);
        total += n;
    }
    types = ARENA_ARRAY(arena, int, total);
    for (int i = 0; i < arg_count; i++) {
        const struct spec_arg *a = &args[i];
        int64_t n = arg_length(a, attrs, attr_count);
        const struct attr *type =
            a->type_attr ? attr_find(attrs, attr_count, a->type_attr) : NULL;

        for (int64_t k = 0; k < n; k++) {
            int dt = !type        ? (int)a->dtype
                     : type->list ? type->value[k].type
                                  : type->value->type;

            types[at++] = a->ref ? (int)dtype_base(dt) + DT_REF : dt;
        }
    }
    *ret_types = types;
    *ret_count = (int)total;
    return MST_OK;
}

static enum mst_code pick_kernel(struct op_node *n, struct status *st)
{
    const struct attr *key =
        attr_find(n->attrs, n->attr_count, n->def->key ? n->def->key : "T");
    int dt = key && key->kind == ATTR_TYPE && !key->list
                 ? (int)dtype_base(key->value->type)
                 : DT_ANY;

    for (const struct op_kernel *k = n->def->kernel; k && k->run; k++)
        if (k->dtype == DT_ANY || (int)k->dtype == dt) {
            n->run = k->run;
            n->key_type = dt;
            return MST_OK;
        }
    return status_set(
        st, MST_INVALID_ARGUMENT,
        "No OpKernel was registered to support Op '%s' used by {{node %s}} "
        "with these attrs: [%s=%s]\nRegistered devices: [CPU]",
        n->def->name, n->name, n->def->key ? n->def->key : "T", dtype_name(dt));
}

enum mst_code spec_complete(struct op_node *n, struct status *st)
{
    const struct op_spec *s = spec_of(n->def);
    int *types;
    enum mst_code rc;

    rc = spec_complete_attrs(n, st);
    if (rc)
        return rc;
    rc = spec_types(s, n->attrs, n->attr_count, n->name, n->arena, false,
                    &types, &n->in_count, st);
    if (rc)
        return rc;
    n->in_types = types;
    rc = spec_types(s, n->attrs, n->attr_count, n->name, n->arena, true, &types,
                    &n->out_count, st);
    if (rc)
        return rc;
    n->out_types = types;
    return pick_kernel(n, st);
}
