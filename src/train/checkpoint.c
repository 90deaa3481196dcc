#include "train/checkpoint.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/cursor.h"
#include "store/file.h"
#include "store/glob.h"

#define STATE_MAX ((uint64_t)1 << 20)

/* ---- the file `checkpoint`: a CheckpointState as text ---- */

/* The text in quotes; escapes as protobuf writes them. */
static char *unquote(const char *at)
{
    char *ret = mem_str(at), *to = ret;

    for (at++; *at && *at != '"' && *at != '\n'; at++) {
        if (*at == '\\' && at[1] >= '0' && at[1] <= '7') {
            int n = 0, value = 0;

            for (; n < 3 && at[1] >= '0' && at[1] <= '7'; n++)
                value = value * 8 + *++at - '0';
            *to++ = (char)value;
        } else if (*at == '\\' && at[1]) {
            *to++ = *++at;
        } else {
            *to++ = *at;
        }
    }
    *to = 0;
    return ret;
}

static void quote(struct bytes *out, const char *text)
{
    bytes_put(out, "\"", 1);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            bytes_put(out, "\\", 1);
        bytes_put(out, text, 1);
    }
    bytes_put(out, "\"\n", 2);
}

static void push(struct checkpoint_dir *c, char *name)
{
    size_t len = strlen(c->dir);

    if (!strncmp(name, c->dir, len) && name[len] == '/')
        memmove(name, name + len + 1, strlen(name + len + 1) + 1);
    for (int i = 0; i < c->count; i++)
        if (!strcmp(c->names[i], name)) {
            mem_free(c->names[i]);
            memmove(&c->names[i], &c->names[i + 1],
                    (size_t)(c->count - i - 1) * sizeof(*c->names));
            c->count--;
        }
    *MEM_PUSH(c->names, c->count, c->room) = name;
}

/* The newest comes first there, and last here. */
static void parse_state(struct checkpoint_dir *c, const char *text)
{
    static const char all[] = "all_model_checkpoint_paths:",
                      newest[] = "model_checkpoint_path:";
    char *last = NULL;

    while (*text) {
        size_t len = strcspn(text, "\n");
        const char *at = text + strspn(text, " \t");
        const char *quoted = strchr(at, '"');

        if (quoted && quoted < text + len) {
            if (!strncmp(at, all, sizeof(all) - 1)) {
                push(c, unquote(quoted));
            } else if (!strncmp(at, newest, sizeof(newest) - 1)) {
                mem_free(last);
                last = unquote(quoted);
            }
        }
        text += len + (text[len] == '\n');
    }
    if (last)
        push(c, last);
}

static enum mst_code read_state(struct checkpoint_dir *c, struct status *st)
{
    char *path = mem_printf("%s/checkpoint", c->dir);
    enum mst_code rc = MST_OK;
    struct file_in f;

    if (file_exists(path)) {
        rc = file_in_open(&f, path, st);
        if (!rc && f.size < STATE_MAX) {
            char *text = mem_new((size_t)f.size + 1);

            rc = file_in_read(&f, 0, text, (size_t)f.size, st);
            if (!rc)
                parse_state(c, text);
            mem_free(text);
        }
        if (!rc || rc == MST_DATA_LOSS)
            file_in_close(&f);
    }
    mem_free(path);
    return rc;
}

static enum mst_code write_state(const struct checkpoint_dir *c,
                                 struct status *st)
{
    char *path = mem_printf("%s/checkpoint", c->dir);
    struct file_out f = FILE_OUT_INIT;
    struct bytes text = { 0 };
    enum mst_code rc;

    bytes_put(&text, "model_checkpoint_path: ", 23);
    quote(&text, c->names[c->count - 1]);
    for (int i = 0; i < c->count; i++) {
        bytes_put(&text, "all_model_checkpoint_paths: ", 28);
        quote(&text, c->names[i]);
    }
    rc = file_out_open(&f, path, st);
    if (!rc)
        rc = file_out_write(&f, text.data, text.len, st);
    if (!rc)
        rc = file_out_commit(&f, st);
    file_out_abort(&f);
    bytes_done(&text);
    mem_free(path);
    return rc;
}

/* ---- the folder ---- */

enum mst_code checkpoint_open(struct checkpoint_dir *c, const char *dir,
                              struct status *st)
{
    char *inside = mem_printf("%s/checkpoint", dir);
    enum mst_code rc;

    *c = (struct checkpoint_dir){ 0 };
    rc = file_make_dirs(inside, st);
    mem_free(inside);
    if (rc)
        return rc;
    c->dir = realpath(dir, NULL);
    if (!c->dir)
        return status_set(st, MST_NOT_FOUND, "There is no folder %s", dir);
    rc = read_state(c, st);
    if (rc)
        checkpoint_close(c);
    return rc;
}

void checkpoint_close(struct checkpoint_dir *c)
{
    for (int i = 0; i < c->count; i++)
        mem_free(c->names[i]);
    mem_free(c->names);
    mem_free(c->dir);
    *c = (struct checkpoint_dir){ 0 };
}

char *checkpoint_prefix(const struct checkpoint_dir *c, int64_t step)
{
    return mem_printf("%s/model.ckpt-%lld", c->dir, (long long)step);
}

static char *full_name(const struct checkpoint_dir *c, const char *name)
{
    return *name == '/' ? mem_str(name) : mem_printf("%s/%s", c->dir, name);
}

char *checkpoint_latest(const struct checkpoint_dir *c)
{
    for (int i = c->count - 1; i >= 0; i--) {
        char *prefix = full_name(c, c->names[i]);
        char *index = mem_printf("%s.index", prefix);
        bool there = file_exists(index);

        mem_free(index);
        if (there)
            return prefix;
        mem_free(prefix);
    }
    return NULL;
}

/* All files of a checkpoint; a name may have characters that match others. */
static void remove_files(const struct checkpoint_dir *c, const char *name)
{
    char *prefix = full_name(c, name);
    char *pattern = mem_printf("%s.*", prefix);
    struct glob_list found = { 0 };

    glob_add(&found, pattern);
    for (size_t i = 0; i < found.count; i++) {
        const char *tail = found.paths[i] + strlen(prefix);

        if (!strncmp(tail, ".data-", 6) || !strcmp(tail, ".index") ||
            !strcmp(tail, ".meta"))
            unlink(found.paths[i]);
    }
    glob_done(&found);
    mem_free(pattern);
    mem_free(prefix);
}

enum mst_code checkpoint_add(struct checkpoint_dir *c, int64_t step, int keep,
                             struct status *st)
{
    int drop;

    push(c, mem_printf("model.ckpt-%lld", (long long)step));
    drop = keep > 0 ? MAX(c->count - keep, 0) : 0;
    for (int i = 0; i < drop; i++) {
        remove_files(c, c->names[i]);
        mem_free(c->names[i]);
    }
    memmove(c->names, c->names + drop,
            (size_t)(c->count - drop) * sizeof(*c->names));
    c->count -= drop;
    return write_state(c, st);
}
