/*
 * What the two halves of the partitioner share: partition.c chooses the nodes
 * of a step and writes the parts; partition_cut.c orders them and makes the
 * pairs of nodes that carry values, control and loops between tasks.
 */
#ifndef GRAPH_PARTITION_STATE_H
#define GRAPH_PARTITION_STATE_H

#include "graph/node_attr.h"
#include "graph/partition.h"

/* A node of the step: one of the client's, or one made here. */
struct piece {
    const struct source_node *src; /* NULL: made here */
    const char *name, *op;
    enum op_kind kind;
    struct graph_input *inputs; /* of pieces */
    int data_count, input_count;
    const uint8_t *attrs; /* fields 5 of a NodeDef, of a made one */
    size_t attrs_len;
    int type;  /* of a made one's output */
    int place; /* its device */
    int frame; /* where it runs */
};

struct frame {
    const char *name;
    size_t name_len;
    int parent;
    int64_t parallel;
    int cond;   /* its LoopCond, or -1 */
    int *merge; /* by device: of the loop that counts along; 0: none yet */
};

struct work {
    const struct source *s;
    const struct place_opts *where;
    const struct part_want *want;
    struct arena arena;
    struct piece *pieces;
    int count, room;
    int *piece_of;   /* by node of the source: index + 1 */
    int *feed_piece; /* by feed */
    int *feed_types;
    struct map fed;      /* (node, output) -> feed + 1 */
    struct map linked;   /* (node, output) -> what is read instead */
    struct map receives; /* (piece, output, task) -> piece + 1 */
    struct frame *frames;
    int frame_count, frame_room;
    int *order;    /* pieces, inputs first */
    int edge;      /* numbers of transfers */
    bool *between; /* by task: it has a transfer without the client's task */
    bool *late;    /* by task: one is asked for when its part may have ended */
    struct status *st;
};

/* ---- partition.c ---- */

/* A name that no node of the client's has. */
const char *partition_name(struct work *w, const char *base, const char *tag);
/* A node of the making; the attributes are taken. Its index. */
int partition_add(struct work *w, const char *name, const char *op,
                  enum op_kind kind, int place, int frame, int type,
                  const struct graph_input *inputs, int data, int control,
                  struct pb_out *attrs);
/* Of a piece's output. */
int partition_type(const struct work *w, int piece, int output);
/* The task that a device is on. */
int partition_task(const struct work *w, int place);
/* The attributes of a transfer's two ends. */
void partition_put_key(struct work *w, struct pb_out *a, const char *name,
                       int from, int to);

/* ---- partition_cut.c ---- */

/* Every edge between tasks becomes a transfer. */
enum mst_code partition_cut(struct work *w);

#endif
