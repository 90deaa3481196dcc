#include "kernel/dataset_collect.h"

#include "base/mem.h"

void collected_add(struct collected *s, struct dataset_iter *in)
{
    s->width = in->count;
    for (int i = 0; i < in->count; i++)
        tensor_move(MEM_PUSH(s->items, s->count, s->room), &in->out[i]);
}

void collected_done(struct collected *s)
{
    for (size_t i = 0; i < s->count; i++)
        tensor_unref(&s->items[i]);
    mem_free(s->items);
    *s = (struct collected){ 0 };
}
