#include "store/glob.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/file.h"

static bool has_wildcard(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (strchr("*?[\\", text[i]))
            return true;
    return false;
}

/*
 * base is a path that exists, with its slash, or empty; rest is what has still
 * to be matched below it.
 */
static void walk(struct glob_list *list, const char *base, const char *rest)
{
    const char *end = strchrnul(rest, '/'), *next = end;
    struct dirent *child;
    char *part;
    DIR *dir;

    while (*next == '/')
        next++;
    if (!has_wildcard(rest, (size_t)(end - rest))) {
        char *path = mem_printf("%s%.*s", base, (int)(next - rest), rest);

        if (*next)
            walk(list, path, next);
        else if (file_exists(path))
            *MEM_PUSH(list->paths, list->count, list->room) = mem_str(path);
        mem_free(path);
        return;
    }
    dir = opendir(*base ? base : ".");
    if (!dir)
        return;
    part = mem_strn(rest, (size_t)(end - rest));
    while ((child = readdir(dir))) {
        const char *name = child->d_name;
        char *path;

        if (!strcmp(name, ".") || !strcmp(name, "..") || fnmatch(part, name, 0))
            continue;
        path = mem_printf("%s%s%s", base, name, *next ? "/" : "");
        if (*next)
            walk(list, path, next);
        else
            *MEM_PUSH(list->paths, list->count, list->room) = mem_str(path);
        mem_free(path);
    }
    mem_free(part);
    closedir(dir);
}

void glob_add(struct glob_list *list, const char *pattern)
{
    size_t first = strcspn(pattern, "/");

    if (!*pattern)
        return;
    if (*pattern == '/')
        walk(list, "/", pattern + strspn(pattern, "/"));
    else
        walk(list, has_wildcard(pattern, first) ? "./" : "", pattern);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void glob_sort(struct glob_list *list)
{
    if (list->count)
        qsort(list->paths, list->count, sizeof(*list->paths), by_bytes);
}

void glob_done(struct glob_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        mem_free(list->paths[i]);
    mem_free(list->paths);
    *list = (struct glob_list){ 0 };
}
