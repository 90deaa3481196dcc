/*
 * Memory of small objects. It is always there, or the process ends, in one
 * place and with one sentence. A size that comes from a shape, a file or a
 * peer is no small object: see base/buffer.h, which may answer no.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include "base/base.h"

void *mem_new(size_t size);                 /* zeroed */
void *mem_array(size_t count, size_t size); /* zeroed */
void *mem_grow(void *old, size_t count, size_t size);
void *mem_copy(const void *data, size_t size);
char *mem_str(const char *text);
char *mem_strn(const char *text, size_t len); /* NUL-terminated */
char *mem_printf(const char *fmt, ...) PRINTF(1, 2);
void mem_free(void *ptr);

/* Zeroed memory of what comes and goes with every step or call: it is kept for
 * reuse as small buffers are (base/buffer.h). */
void *mem_take(size_t size);
void mem_give(void *ptr); /* accepts NULL */

#define MEM_NEW(type)  ((type *)mem_new(sizeof(type)))
#define MEM_TAKE(type) ((type *)mem_take(sizeof(type)))

/* Makes room for one more element in a growing array and returns its place. */
#define MEM_PUSH(array, count, cap)                                            \
    ((count) == (cap)                                                          \
         ? (void)((cap) = (cap) ? (cap)*2 : 8,                                 \
                  (array) = mem_grow((array), (cap), sizeof(*(array))))        \
         : (void)0,                                                            \
     &(array)[(count)++])

#endif
