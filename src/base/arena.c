#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#define BLOCK_MIN ((size_t)4096)
#define BLOCK_MAX ((size_t)1 << 20)

struct arena_block {
    struct arena_block *next;
    size_t used, size;
    _Alignas(16) uint8_t data[];
};

void arena_init(struct arena *a)
{
    *a = (struct arena){ 0 };
}

void arena_done(struct arena *a)
{
    while (a->first) {
        struct arena_block *b = a->first;

        a->first = b->next;
        mem_free(b);
    }
    a->bytes = 0;
}

void arena_reset(struct arena *a)
{
    struct arena_block *keep = a->first;

    if (!keep)
        return;
    a->first = keep->next;
    arena_done(a);
    keep->next = NULL;
    keep->used = 0;
    a->first = keep;
    a->bytes = keep->size;
}

void *arena_alloc(struct arena *a, size_t size)
{
    size_t need = (size + 15) & ~(size_t)15;
    struct arena_block *b = a->first;
    void *ptr;

    if (!b || b->size - b->used < need) {
        size_t room = MIN(MAX(a->bytes, BLOCK_MIN), BLOCK_MAX);

        room = MAX(room, need);
        b = mem_grow(NULL, 1, sizeof(*b) + room);
        b->next = a->first;
        b->used = 0;
        b->size = room;
        a->first = b;
        a->bytes += room;
    }
    ptr = b->data + b->used;
    b->used += need;
    return memset(ptr, 0, size);
}

void *arena_copy(struct arena *a, const void *data, size_t size)
{
    void *copy = arena_alloc(a, size);

    if (size)
        memcpy(copy, data, size);
    return copy;
}

char *arena_str(struct arena *a, const char *text)
{
    return arena_copy(a, text, strlen(text) + 1);
}

char *arena_strn(struct arena *a, const char *text, size_t len)
{
    char *copy = arena_alloc(a, len + 1);

    if (len)
        memcpy(copy, text, len);
    return copy;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list args;
    char *text;
    int n;

    va_start(args, fmt);
    n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    text = arena_alloc(a, (size_t)n + 1);
    va_start(args, fmt);
    vsnprintf(text, (size_t)n + 1, fmt, args);
    va_end(args);
    return text;
}
