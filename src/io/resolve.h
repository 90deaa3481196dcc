/*
 * Names to addresses without stopping a loop. Numbers are answered at once;
 * names go to a thread of their own, as getaddrinfo() may take half a minute.
 */
#ifndef IO_RESOLVE_H
#define IO_RESOLVE_H

#include "io/addr.h"
#include "io/loop.h"

#define RESOLVE_MAX 8

struct resolve;

/* error is NULL, or says why there are no addresses. Runs on the loop thread,
 * never inside of resolve_start(); the resolve is gone after it. */
typedef void resolve_fn(void *arg, const struct addr *addrs, int count,
                        const char *error);

/* On the loop thread. */
struct resolve *resolve_start(struct loop *loop, const struct addr_name *name,
                              resolve_fn *done, void *arg);
/* On the loop thread, before done: it is then not called. */
void resolve_cancel(struct resolve *r);

#endif
