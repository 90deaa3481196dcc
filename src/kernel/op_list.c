/*
 * The table of ops: op_list.h expanded as declarations and as an array, and
 * the look-up by name, which happens when a graph is compiled.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "op/op.h"

#define OP(stem) extern const struct op_def def_##stem;
#include "kernel/op_list.h"
#undef OP

#define OP(stem) &def_##stem,
static const struct op_def *ops[] = {
#include "kernel/op_list.h"
    NULL
};
#undef OP

static struct map by_name;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int compare(const void *a, const void *b)
{
    const struct op_def *const *x = a, *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

static void build(void)
{
    qsort(ops, COUNT(ops) - 1, sizeof(ops[0]), compare);
    for (size_t i = 0; ops[i]; i++)
        CHECK(!map_put_str(&by_name, ops[i]->name, (void *)ops[i]));
}

const struct op_def *op_find(const char *name)
{
    pthread_once(&once, build);
    return map_get_str(&by_name, name);
}

const struct op_def *const *op_all(void)
{
    pthread_once(&once, build);
    return ops;
}
