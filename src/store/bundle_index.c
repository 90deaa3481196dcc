#include "store/bundle_index.h"

#include <stdlib.h>

#include "base/mem.h"
#include "store/table_writer.h"

void bundle_index_init(struct bundle_index *x)
{
    *x = (struct bundle_index){ 0 };
    map_init(&x->by_key);
}

void bundle_index_done(struct bundle_index *x)
{
    for (size_t i = 0; i < x->count; i++) {
        bundle_entry_done(&x->items[i]->entry);
        mem_free(x->items[i]->key);
        mem_free(x->items[i]);
    }
    mem_free(x->items);
    map_done(&x->by_key);
    *x = (struct bundle_index){ 0 };
}

struct bundle_entry *bundle_index_find(const struct bundle_index *x,
                                       const void *key, size_t len)
{
    struct bundle_item *item = map_get(&x->by_key, key, len);

    return item ? &item->entry : NULL;
}

struct bundle_entry *bundle_index_add(struct bundle_index *x, const void *key,
                                      size_t len)
{
    struct bundle_item *item = MEM_NEW(struct bundle_item);

    item->key = mem_copy(key, len);
    item->key_len = len;
    CHECK(!map_put(&x->by_key, key, len, item));
    *MEM_PUSH(x->items, x->count, x->room) = item;
    return &item->entry;
}

static int by_key(const void *a, const void *b)
{
    const struct bundle_item *const *x = a, *const *y = b;

    return table_compare((*x)->key, (*x)->key_len, (*y)->key, (*y)->key_len);
}

enum mst_code bundle_index_write(struct bundle_index *x,
                                 const struct bundle_header *header,
                                 struct file_out *out, struct status *st)
{
    struct pb_out value;
    struct table_writer table;
    enum mst_code rc;

    if (x->count)
        qsort(x->items, x->count, sizeof(*x->items), by_key);
    table_writer_init(&table, out);
    pb_out_init(&value);
    bundle_header_put(&value, header);
    rc = table_writer_add(&table, "", 0, value.data, value.len, st);
    for (size_t i = 0; i < x->count && !rc; i++) {
        value.len = 0;
        bundle_entry_put(&value, &x->items[i]->entry);
        rc = table_writer_add(&table, x->items[i]->key, x->items[i]->key_len,
                              value.data, value.len, st);
    }
    if (!rc)
        rc = table_writer_finish(&table, st);
    table_writer_done(&table);
    pb_out_done(&value);
    return rc;
}
