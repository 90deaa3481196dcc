#include "train/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/mem.h"
#include "store/cursor.h"
#include "store/file.h"

#define INFLATE_RATIO 1040 /* deflate cannot do more */

/* ---- files ---- */

struct mapped {
    void *at;
    size_t len;
};

static void unmap(void *arg)
{
    struct mapped *m = arg;

    munmap(m->at, m->len);
    mem_free(m);
}

enum mst_code npy_map(const char *path, struct buffer **ret, struct status *st)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct mapped *m;
    struct stat s;
    void *at;

    if (fd < 0)
        return file_fail(st, path, errno);
    if (fstat(fd, &s)) {
        close(fd);
        return file_fail(st, path, errno);
    }
    if (!S_ISREG(s.st_mode) || !s.st_size) {
        close(fd);
        return status_set(st, MST_INVALID_ARGUMENT,
                          "%s is empty or no plain file", path);
    }
    at = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (at == MAP_FAILED)
        return file_fail(st, path, errno);
    m = MEM_NEW(struct mapped);
    *m = (struct mapped){ at, (size_t)s.st_size };
    *ret = buffer_wrap(at, m->len, unmap, m);
    return MST_OK;
}

/* ---- one array ---- */

struct header {
    char descr[16];
    bool fortran;
    int ndim;
    int64_t dims[TENSOR_RANK_MAX];
};

static enum mst_code damaged(struct status *st, const char *name,
                             const char *what)
{
    return status_set(st, MST_DATA_LOSS, "%s is damaged: %s", name, what);
}

/* What follows 'key': in the text of the header. */
static const char *after_key(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    if (!at)
        return NULL;
    at += strlen(key);
    at += strspn(at, " ");
    if (*at != ':')
        return NULL;
    return at + 1 + strspn(at + 1, " ");
}

/* {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } */
static bool parse_header(const char *text, struct header *h)
{
    const char *descr = after_key(text, "'descr'");
    const char *order = after_key(text, "'fortran_order'");
    const char *shape = after_key(text, "'shape'");
    size_t len;

    if (!descr || !order || !shape || *descr != '\'' || *shape != '(')
        return false;
    len = strcspn(++descr, "'");
    if (len >= sizeof(h->descr))
        return false;
    memcpy(h->descr, descr, len);
    h->descr[len] = 0;
    h->fortran = !strncmp(order, "True", 4);
    h->ndim = 0;
    for (shape++; *shape && *shape != ')';) {
        char *end;
        long long n = strtoll(shape, &end, 10);

        if (end == shape || n < 0 || h->ndim == TENSOR_RANK_MAX)
            return false;
        h->dims[h->ndim++] = n;
        shape = end + strspn(end, "L, ");
    }
    return *shape == ')';
}

/* Of one byte order and type, as "<f4" says it. */
static enum dtype type_of(const char *descr)
{
    static const struct {
        const char *code;
        enum dtype type;
    } types[] = {
        { "f4", DT_FLOAT },     { "f8", DT_DOUBLE },      { "f2", DT_HALF },
        { "i1", DT_INT8 },      { "i2", DT_INT16 },       { "i4", DT_INT32 },
        { "i8", DT_INT64 },     { "u1", DT_UINT8 },       { "u2", DT_UINT16 },
        { "u4", DT_UINT32 },    { "u8", DT_UINT64 },      { "b1", DT_BOOL },
        { "c8", DT_COMPLEX64 }, { "c16", DT_COMPLEX128 },
    };

    if (!*descr || !strchr("<|=", *descr))
        return DT_INVALID;
    if (descr[1] == 'S')
        return DT_STRING;
    for (size_t i = 0; i < COUNT(types); i++)
        if (!strcmp(types[i].code, descr + 1))
            return types[i].type;
    return DT_INVALID;
}

/* Texts of a fixed width, padded with zeros. */
static enum mst_code read_strings(struct tensor *t, const char *name,
                                  const struct header *h, const uint8_t *data,
                                  size_t len, struct status *st)
{
    size_t width = (size_t)strtoul(h->descr + 2, NULL, 10);
    int64_t count;

    if (!shape_count(h->ndim, h->dims, MAX(width, 1), &count) ||
        (size_t)count * width != len)
        return damaged(st, name, "its size is not that of its shape");
    if (tensor_new(t, DT_STRING, h->ndim, h->dims, st))
        return st->code;
    for (int64_t i = 0; i < count; i++) {
        const char *at = (const char *)data + (size_t)i * width;
        size_t n = width;

        while (n && !at[n - 1])
            n--;
        str_set(tensor_str(t, i), at, n);
    }
    return MST_OK;
}

static enum mst_code take_array(struct tensor *t, const char *name,
                                const struct header *h, struct buffer *owner,
                                const uint8_t *data, size_t len,
                                struct status *st)
{
    enum dtype type = type_of(h->descr);
    int64_t count;

    if (type == DT_INVALID)
        return status_set(st, MST_UNIMPLEMENTED,
                          "%s has elements of type '%s', which cannot be fed",
                          name, h->descr);
    if (h->fortran && h->ndim > 1)
        return status_set(st, MST_UNIMPLEMENTED,
                          "%s is in Fortran order; save it with "
                          "numpy.ascontiguousarray()",
                          name);
    if (type == DT_STRING)
        return read_strings(t, name, h, data, len, st);
    if (!shape_count(h->ndim, h->dims, dtype_size(type), &count) ||
        (size_t)count * dtype_size(type) != len)
        return damaged(st, name, "its size is not that of its shape");
    if (!len || (uintptr_t)data % 16) { /* members of archives lie anywhere */
        if (tensor_new(t, type, h->ndim, h->dims, st))
            return st->code;
        if (len)
            memcpy(t->data, data, len);
        return MST_OK;
    }
    tensor_wrap(t, type, h->ndim, h->dims, buffer_ref(owner), (void *)data);
    return MST_OK;
}

enum mst_code npy_parse(struct tensor *t, const char *name,
                        struct buffer *owner, const uint8_t *data, size_t len,
                        struct status *st)
{
    struct header h;
    enum mst_code rc;
    size_t at, size;
    char *text;

    if (len < 12 || memcmp(data, "\x93NUMPY", 6))
        return status_set(st, MST_INVALID_ARGUMENT, "%s is no NumPy file",
                          name);
    at = data[6] == 1 ? 10 : 12;
    size = data[6] == 1 ? (size_t)data[8] | (size_t)data[9] << 8
                        : load_u32(data + 8);
    if (data[6] < 1 || data[6] > 3 || size > len - at)
        return damaged(st, name, "its header is cut off");
    text = mem_strn((const char *)data + at, size);
    rc = parse_header(text, &h)
             ? MST_OK
             : damaged(st, name, "its header makes no sense");
    mem_free(text);
    return rc ? rc
              : take_array(t, name, &h, owner, data + at + size,
                           len - at - size, st);
}

/* ---- archives ---- */

struct member {
    const char *name;
    size_t name_len;
    uint16_t method;
    uint32_t packed, plain, at;
};

static uint16_t u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

/* The end of the archive says where its directory is. */
static bool find_directory(const struct buffer *file, size_t *ret_at,
                           int *ret_count)
{
    size_t len = file->size, back = MIN(len, 22 + 65535);

    for (size_t n = 22; n <= back; n++) {
        const uint8_t *p = file->data + len - n;

        if (load_u32(p) == 0x06054b50) {
            *ret_count = u16(p + 10);
            *ret_at = load_u32(p + 16);
            return *ret_at < len;
        }
    }
    return false;
}

static bool next_member(const struct buffer *file, size_t *at,
                        struct member *ret)
{
    const uint8_t *p = file->data + *at;
    size_t left = file->size - *at, size;

    if (left < 46 || load_u32(p) != 0x02014b50)
        return false;
    size = 46u + u16(p + 28) + u16(p + 30) + u16(p + 32);
    if (size > left)
        return false;
    *ret = (struct member){ (const char *)p + 46, u16(p + 28),
                            u16(p + 10),          load_u32(p + 20),
                            load_u32(p + 24),     load_u32(p + 42) };
    *at += size;
    return true;
}

static struct buffer *inflate_member(const uint8_t *data,
                                     const struct member *m)
{
    struct buffer *b;
    z_stream z = { .next_in = (Bytef *)data, .avail_in = m->packed };
    int rc;

    if (m->plain / INFLATE_RATIO > m->packed ||
        inflateInit2(&z, -MAX_WBITS) != Z_OK)
        return NULL;
    b = buffer_new(m->plain);
    if (b) {
        z.next_out = b->data;
        z.avail_out = m->plain;
        rc = inflate(&z, Z_FINISH);
        if (rc != Z_STREAM_END || z.avail_out) {
            buffer_unref(b);
            b = NULL;
        }
    }
    inflateEnd(&z);
    return b;
}

static enum mst_code read_member(struct tensor *t, const char *name,
                                 struct buffer *file, const struct member *m,
                                 struct status *st)
{
    const uint8_t *p = file->data + m->at;
    struct buffer *plain;
    enum mst_code rc;
    size_t head;

    if (m->at > file->size || file->size - m->at < 30 ||
        load_u32(p) != 0x04034b50)
        return damaged(st, name, "a member is not where it should be");
    head = 30u + u16(p + 26) + u16(p + 28);
    if (head > file->size - m->at || m->packed > file->size - m->at - head)
        return damaged(st, name, "a member is cut off");
    if (m->method == 0)
        return npy_parse(t, name, file, p + head, m->packed, st);
    if (m->method != 8)
        return status_set(st, MST_UNIMPLEMENTED,
                          "%s is packed by a method other than deflate", name);
    plain = inflate_member(p + head, m);
    if (!plain)
        return damaged(st, name, "a member cannot be unpacked");
    rc = npy_parse(t, name, plain, plain->data, plain->size, st);
    buffer_unref(plain);
    return rc;
}

/* Members are called "key.npy". */
static bool has_key(const struct member *m, const char *key)
{
    size_t len = strlen(key);

    return m->name_len >= len && !memcmp(m->name, key, len) &&
           (m->name_len == len ||
            (m->name_len == len + 4 && !memcmp(m->name + len, ".npy", 4)));
}

enum mst_code npy_member(struct tensor *t, const char *path,
                         struct buffer *file, const char *key,
                         struct status *st)
{
    struct member m;
    size_t at, begin;
    int count;

    if (!find_directory(file, &begin, &count))
        return status_set(st, MST_INVALID_ARGUMENT, "%s is no .npz file", path);
    at = begin;
    for (int i = 0; i < count; i++) {
        if (!next_member(file, &at, &m))
            return damaged(st, path, "its directory is cut off");
        if (has_key(&m, key))
            return read_member(t, path, file, &m, st);
    }
    status_set(st, MST_NOT_FOUND, "%s has no array \"%s\"; it has", path, key);
    at = begin;
    for (int i = 0; i < count && next_member(file, &at, &m); i++)
        status_append(st, " \"%.*s\"",
                      (int)(m.name_len > 4 ? m.name_len - 4 : m.name_len),
                      m.name);
    return st->code;
}

enum mst_code npy_read(struct tensor *t, const char *source, struct status *st)
{
    const char *mark = strstr(source, ".npz:");
    char *path =
        mark ? mem_strn(source, (size_t)(mark + 4 - source)) : mem_str(source);
    struct buffer *file = NULL;
    enum mst_code rc;

    rc = npy_map(path, &file, st);
    if (!rc)
        rc = mark ? npy_member(t, path, file, mark + 5, st)
                  : npy_parse(t, path, file, file->data, file->size, st);
    buffer_unref(file);
    mem_free(path);
    return rc;
}
