/*
 * Files that match a pattern, as TensorFlow's GetMatchingPaths() has it: `*`,
 * `?` and `[...]` within one part of a path, `\` before what is meant as it
 * stands; hidden files match too. A relative pattern gives paths that begin
 * with "./" when its first part is one to match.
 */
#ifndef STORE_GLOB_H
#define STORE_GLOB_H

#include "base/base.h"

struct glob_list {
    char **paths;
    size_t count, room;
};

/* Adds what matches. What cannot be looked into has no matches. */
void glob_add(struct glob_list *list, const char *pattern);
/* In the order of bytes. */
void glob_sort(struct glob_list *list);
void glob_done(struct glob_list *list);

#endif
