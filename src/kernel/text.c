#include "kernel/text.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static void make_room(struct text *t, size_t more)
{
    if (t->room - t->len >= more)
        return;
    t->room = MAX(t->len + more, t->room * 2);
    t->data = mem_grow(t->data, t->room, 1);
}

void text_add(struct text *t, const void *data, size_t len)
{
    if (!len)
        return;
    make_room(t, len);
    memcpy(t->data + t->len, data, len);
    t->len += len;
}

void text_addf(struct text *t, const char *fmt, ...)
{
    char small[128];
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(small, sizeof(small), fmt, args);
    va_end(args);
    if (n < (int)sizeof(small)) {
        text_add(t, small, (size_t)MAX(n, 0));
        return;
    }
    make_room(t, (size_t)n + 1);
    va_start(args, fmt);
    vsnprintf(t->data + t->len, (size_t)n + 1, fmt, args);
    va_end(args);
    t->len += (size_t)n;
}

void text_give(struct text *t, struct str *s)
{
    free(s->data);
    s->len = t->len;
    s->data = t->len ? t->data : NULL;
    if (!t->len)
        mem_free(t->data);
    *t = (struct text){ 0 };
}

void text_done(struct text *t)
{
    mem_free(t->data);
    *t = (struct text){ 0 };
}

void text_add_float(struct text *t, float x)
{
    char digits[32];

    if (isnan(x)) {
        text_add(t, "nan", 3);
        return;
    }
    snprintf(digits, sizeof(digits), "%.*g", FLT_DIG, (double)x);
    if (strtof(digits, NULL) != x)
        snprintf(digits, sizeof(digits), "%.*g", FLT_DIG + 3, (double)x);
    text_add(t, digits, strlen(digits));
}

void text_add_double(struct text *t, double x)
{
    char digits[40];

    if (isnan(x)) {
        text_add(t, "nan", 3);
        return;
    }
    snprintf(digits, sizeof(digits), "%.*g", DBL_DIG, x);
    if (strtod(digits, NULL) != x)
        snprintf(digits, sizeof(digits), "%.*g", DBL_DIG + 2, x);
    text_add(t, digits, strlen(digits));
}

void text_add_escaped(struct text *t, const struct str *s)
{
    static const char special[] = "\n\r\t\"'\\", letter[] = "nrt\"'\\";

    for (size_t i = 0; i < s->len; i++) {
        unsigned char ch = (unsigned char)s->data[i];
        const char *at = ch ? strchr(special, ch) : NULL;

        if (at)
            text_addf(t, "\\%c", letter[at - special]);
        else if (ch < 0x20 || ch == 0x7f)
            text_addf(t, "\\%03o", ch);
        else
            text_add(t, &ch, 1);
    }
}
