#include "graph/node_attr.h"

#include <string.h>

void node_attr_put(struct pb_out *o, const char *name,
                   const struct pb_out *value)
{
    struct pb_out entry;

    pb_out_init(&entry);
    pb_put_bytes(&entry, 1, name, strlen(name));
    pb_put_bytes(&entry, 2, value->data, value->len);
    pb_put_bytes(o, 5, entry.data, entry.len);
    pb_out_done(&entry);
}

void node_attr_put_num(struct pb_out *o, const char *name, uint32_t field,
                       uint64_t value)
{
    struct pb_out v;

    pb_out_init(&v);
    pb_put_uint(&v, field, value);
    node_attr_put(o, name, &v);
    pb_out_done(&v);
}

void node_attr_put_text(struct pb_out *o, const char *name, const char *text,
                        size_t len)
{
    struct pb_out v;

    pb_out_init(&v);
    pb_put_bytes(&v, 2, text, len);
    node_attr_put(o, name, &v);
    pb_out_done(&v);
}

bool node_attr_find(const struct source_node *n, const char *name,
                    uint32_t field, struct pb_field *ret)
{
    struct pb_in in = pb_in(n->wire, n->wire_len);
    struct pb_field attr, part;

    while (pb_next(&in, &attr)) {
        struct pb_in entry = pb_in(attr.data, attr.len);
        bool found = false;

        if (attr.number != 5 || attr.wire != PB_LEN)
            continue;
        while (pb_next(&entry, &part)) {
            if (part.wire == PB_LEN && part.number == 1)
                found = part.len == strlen(name) &&
                        !memcmp(part.data, name, part.len);
            if (part.wire == PB_LEN && part.number == 2 && found) {
                struct pb_in value = pb_in(part.data, part.len);

                while (pb_next(&value, ret))
                    if (ret->number == field)
                        return true;
            }
        }
    }
    return false;
}
