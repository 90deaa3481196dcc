/*
 * An op's record in a form that can be checked: its `in`, `out` and `attr`
 * texts parsed, once, when the op is first used.
 */
#ifndef OP_SPEC_H
#define OP_SPEC_H

#include "op/op.h"

#define SPEC_ARGS_MAX  24
#define SPEC_ATTRS_MAX 24

struct spec_arg {
    const char *name;
    bool ref;
    enum dtype dtype;        /* fixed type; DT_INVALID: see the attributes */
    const char *type_attr;   /* type of all, or list(type) of each */
    const char *number_attr; /* how many; NULL: one, or as the list says */
};

struct spec_attr {
    const char *name;
    enum attr_kind kind;
    bool list;
    uint64_t allowed;        /* bits of enum dtype; 0: any */
    uint8_t order[DT_COUNT]; /* the same, as the record lists them */
    int allowed_count;
    const char *const *words; /* allowed strings, ends with NULL; or NULL */
    bool has_min;
    int64_t min; /* of an int, or of a list's length */
    bool has_default;
    struct attr value; /* the default */
};

struct op_spec {
    const struct op_def *def;
    struct spec_arg in[SPEC_ARGS_MAX], out[SPEC_ARGS_MAX];
    int in_count, out_count;
    struct spec_attr attr[SPEC_ATTRS_MAX];
    int attr_count;
};

/* Any thread. A record that does not parse is a mistake of ours. */
const struct op_spec *spec_of(const struct op_def *def);

/*
 * Completes a node whose name, def, env, arena and raw attributes are set:
 * fills in defaults, checks every attribute against the spec, computes the
 * types of inputs and outputs, picks the kernel. Attributes that the spec does
 * not name are dropped silently, as newer producers add some.
 */
enum mst_code spec_complete(struct op_node *n, struct status *st) MUST_USE;

/* Only the first of it: the attributes. */
enum mst_code spec_complete_attrs(struct op_node *n,
                                  struct status *st) MUST_USE;

/* Only the types: of every input and output of a node with such attributes,
 * into arrays from the arena. */
enum mst_code spec_types(const struct op_spec *spec, const struct attr *attrs,
                         int attr_count, const char *node_name,
                         struct arena *arena, bool outputs, int **ret_types,
                         int *ret_count, struct status *st) MUST_USE;

#endif
