/*
 * A string that grows, and becomes an element of a tensor without a copy.
 */
#ifndef KERNEL_TEXT_H
#define KERNEL_TEXT_H

#include "tensor/tensor.h"

struct text {
    char *data;
    size_t len, room;
};

void text_add(struct text *t, const void *data, size_t len);
void text_addf(struct text *t, const char *fmt, ...) PRINTF(2, 3);
static inline void text_add_str(struct text *t, const struct str *s)
{
    text_add(t, s->data, s->len);
}
/* s gets what t has; t is empty then. */
void text_give(struct text *t, struct str *s);
void text_done(struct text *t);

/* A float or double in as few digits as bring it back, as TensorFlow writes
 * numbers into texts. */
void text_add_float(struct text *t, float x);
void text_add_double(struct text *t, double x);
/* With escapes of C for quotes, backslashes and what is not printable; bytes
 * from 0x80 on stay. */
void text_add_escaped(struct text *t, const struct str *s);

#endif
