#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

static void *mem_got(void *ptr)
{
    if (!ptr) {
        fputs("muster: out of memory\n", stderr);
        abort();
    }
    return ptr;
}

void *mem_new(size_t size)
{
    return mem_got(calloc(1, size ? size : 1));
}

void *mem_array(size_t count, size_t size)
{
    return mem_got(calloc(count ? count : 1, size ? size : 1));
}

void *mem_grow(void *old, size_t count, size_t size)
{
    size_t bytes;

    CHECK(!__builtin_mul_overflow(count, size, &bytes));
    return mem_got(realloc(old, bytes ? bytes : 1));
}

void *mem_copy(const void *data, size_t size)
{
    void *copy = mem_got(malloc(size ? size : 1));

    if (size)
        memcpy(copy, data, size);
    return copy;
}

char *mem_str(const char *text)
{
    return mem_copy(text, strlen(text) + 1);
}

char *mem_strn(const char *text, size_t len)
{
    char *copy = mem_got(malloc(len + 1));

    if (len)
        memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

char *mem_printf(const char *fmt, ...)
{
    va_list args;
    char *text;
    int n;

    va_start(args, fmt);
    n = vasprintf(&text, fmt, args);
    va_end(args);
    return mem_got(n < 0 ? NULL : text);
}

void mem_free(void *ptr)
{
    free(ptr);
}

static void large_release(struct buffer *b)
{
    free(b);
}

/* Always with the record before the data, so that mem_give() finds it. */
static struct buffer *large_take(size_t size)
{
    struct buffer *b;

    CHECK(size < SIZE_MAX - BUFFER_HEAD);
    b = mem_got(malloc(BUFFER_HEAD + size));
    *b = (struct buffer){ .refs = 1,
                          .data = (uint8_t *)b + BUFFER_HEAD,
                          .size = size,
                          .release = large_release };
    return b;
}

void *mem_take(size_t size)
{
    struct buffer *b =
        size < BUFFER_LARGE ? mem_got(buffer_new(size)) : large_take(size);

    return memset(b->data, 0, size);
}

void mem_give(void *ptr)
{
    if (ptr)
        buffer_unref((struct buffer *)((uint8_t *)ptr - BUFFER_HEAD));
}
