/* Attributes of a NodeDef, written and found as bytes. */
#ifndef GRAPH_NODE_ATTR_H
#define GRAPH_NODE_ATTR_H

#include "graph/source.h"
#include "wire/pb.h"

/* Each appends one attribute to a NodeDef; value is an AttrValue. */
void node_attr_put(struct pb_out *o, const char *name,
                   const struct pb_out *value);
/* Field 3 of an AttrValue is an int, 5 a bool, 6 a type. */
void node_attr_put_num(struct pb_out *o, const char *name, uint32_t field,
                       uint64_t value);
void node_attr_put_text(struct pb_out *o, const char *name, const char *text,
                        size_t len);

/* That field of the AttrValue of a client's node; false if there is none. */
bool node_attr_find(const struct source_node *n, const char *name,
                    uint32_t field, struct pb_field *ret);

#endif
