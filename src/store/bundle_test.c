/*
 * Checkpoints: everything that can be saved comes back, in any cut; everything
 * that can be damaged is noticed.
 */
#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "base/mem.h"
#include "base/rng.h"
#include "store/bundle_load.h"
#include "store/bundle_merge.h"
#include "store/bundle_writer.h"

static char dir[64], prefix[128];
static struct status st;

static int setup(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/bundle_test_XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(prefix, sizeof(prefix), "%s/model", dir);
    return 0;
}

static int teardown(void **state)
{
    char command[100];

    (void)state;
    snprintf(command, sizeof(command), "rm -r %s", dir);
    return system(command);
}

static int files_in(const char *path)
{
    DIR *d = opendir(path);
    int n = -2; /* "." and ".." */

    if (!d)
        return -1;
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* ---- help ---- */

static struct tensor make(enum dtype dt, int ndim, const int64_t *dims,
                          uint64_t seed)
{
    struct tensor t = { 0 };

    assert_int_equal(tensor_new(&t, dt, ndim, dims, &st), MST_OK);
    if (dt == DT_STRING) {
        for (int64_t i = 0; i < t.count; i++) {
            char bytes[300];
            size_t len = rng_next(&seed) % sizeof(bytes);

            for (size_t k = 0; k < len; k++)
                bytes[k] = (char)rng_next(&seed);
            str_set(tensor_str(&t, i), bytes, len);
        }
        return t;
    }
    for (size_t i = 0; i < tensor_bytes(&t); i++)
        TENSOR_DATA(&t, uint8_t)[i] = (uint8_t)rng_next(&seed);
    return t;
}

static bool same(const struct tensor *a, const struct tensor *b)
{
    if (a->dtype != b->dtype || !tensor_same_shape(a, b))
        return false;
    for (int64_t i = 0; a->dtype == DT_STRING && i < a->count; i++) {
        struct str *x = tensor_str(a, i), *y = tensor_str(b, i);

        if (x->len != y->len || (x->len && memcmp(x->data, y->data, x->len)))
            return false;
    }
    return a->dtype == DT_STRING || !a->count ||
           !memcmp(a->data, b->data, tensor_bytes(a));
}

static void open_writer(struct bundle_writer *w)
{
    assert_int_equal(bundle_writer_open(w, prefix, &st), MST_OK);
}

static void add(struct bundle_writer *w, const char *name,
                const struct tensor *t)
{
    assert_int_equal(bundle_writer_add(w, name, strlen(name), t, &st), MST_OK);
}

static void finish(struct bundle_writer *w)
{
    assert_int_equal(bundle_writer_finish(w, &st), MST_OK);
    bundle_writer_done(w);
}

static enum mst_code load(struct bundle_reader *r, const char *name,
                          const char *spec, enum dtype dt, struct tensor *ret)
{
    struct bundle_read q = { .name = name,
                             .name_len = strlen(name),
                             .spec = spec,
                             .spec_len = strlen(spec),
                             .dtype = dt };
    enum mst_code rc = bundle_load(r, &q, 1, NULL, &st);

    *ret = q.out;
    return rc;
}

/* ---- round trips ---- */

static const int64_t shapes[][3] = { { 0 }, { 3 }, { 0, 4 }, { 2, 3, 4 } };
static const int ranks[] = { 0, 1, 2, 3 };

static void test_all_types_and_shapes_come_back(void **state)
{
    struct bundle_writer w;
    struct bundle_reader r;
    char name[64];

    (void)state;
    for (int pass = 0; pass < 2; pass++) {
        if (!pass)
            open_writer(&w);
        else
            assert_int_equal(bundle_reader_open(&r, prefix, &st), MST_OK);
        for (int dt = 1; dt < DT_COUNT; dt++) {
            if (dt == DT_RESOURCE || dt == DT_VARIANT)
                continue;
            for (size_t s = 0; s < COUNT(shapes); s++) {
                struct tensor t = make((enum dtype)dt, ranks[s], shapes[s],
                                       (uint64_t)dt * 10 + s);
                struct tensor back;

                sprintf(name, "t/%s_%zu", dtype_name(dt), s);
                if (!pass) {
                    add(&w, name, &t);
                } else {
                    assert_int_equal(load(&r, name, "", (enum dtype)dt, &back),
                                     MST_OK);
                    assert_true(same(&t, &back));
                    tensor_unref(&back);
                }
                tensor_unref(&t);
            }
        }
        if (!pass)
            finish(&w);
        else
            bundle_reader_close(&r);
    }
    assert_int_equal(files_in(dir), 2);
}

static void test_objects_are_refused(void **state)
{
    struct tensor t = make(DT_FLOAT, 0, NULL, 1);
    struct bundle_writer w;

    (void)state;
    open_writer(&w);
    t.dtype = DT_VARIANT;
    assert_int_equal(bundle_writer_add(&w, "v", 1, &t, &st), MST_UNIMPLEMENTED);
    t.dtype = DT_FLOAT;
    assert_int_equal(bundle_writer_add(&w, "", 0, &t, &st),
                     MST_INVALID_ARGUMENT);
    add(&w, "x", &t);
    assert_int_equal(bundle_writer_add(&w, "x", 1, &t, &st),
                     MST_INVALID_ARGUMENT);
    assert_string_equal(st.msg, "Adding duplicate key: x");
    bundle_writer_done(&w);
    tensor_unref(&t);
    assert_int_equal(files_in(dir), 0); /* no finish: no trace */
}

static void test_thousands_of_tensors_come_back(void **state)
{
    enum { N = 20000 };
    struct bundle_read *reads = mem_array(N, sizeof(*reads));
    char(*names)[48] = mem_array(N, sizeof(*names));
    struct pool *pool = pool_new(2);
    struct bundle_writer w;
    struct bundle_reader r;
    struct stat index;
    char path[160];

    (void)state;
    open_writer(&w);
    for (int i = 0; i < N; i++) {
        struct tensor t = make(DT_INT32, 1, (int64_t[]){ i % 5 }, (uint64_t)i);

        sprintf(names[i], "some/scope/of/a/model/variable_%d", i);
        add(&w, names[i], &t);
        tensor_unref(&t);
        reads[(i * 7) % N] = (struct bundle_read){ .name = names[i],
                                                   .name_len = strlen(names[i]),
                                                   .dtype = DT_INT32 };
    }
    finish(&w);
    sprintf(path, "%s.index", prefix);
    assert_int_equal(stat(path, &index), 0);
    assert_true(index.st_size > 300 << 10); /* several blocks */
    assert_int_equal(bundle_reader_open(&r, prefix, &st), MST_OK);
    assert_int_equal(bundle_load(&r, reads, N, pool, &st), MST_OK);
    for (int i = 0; i < N; i++) {
        struct tensor t = make(DT_INT32, 1, (int64_t[]){ i % 5 }, (uint64_t)i);

        assert_true(same(&t, &reads[(i * 7) % N].out));
        tensor_unref(&reads[(i * 7) % N].out);
        tensor_unref(&t);
    }
    bundle_reader_close(&r);
    pool_free(pool);
    mem_free(names);
    mem_free(reads);
}

static void test_large_tensor_comes_back_on_several_threads(void **state)
{
    /* Not a multiple of what one thread reads at once. */
    struct tensor t = make(DT_FLOAT, 2, (int64_t[]){ 5, 1300001 }, 3);
    struct bundle_read q = { .name = "x", .name_len = 1 };
    struct pool *pool = pool_new(3);
    struct bundle_writer w;
    struct bundle_reader r;

    (void)state;
    open_writer(&w);
    add(&w, "x", &t);
    finish(&w);
    assert_int_equal(bundle_reader_open(&r, prefix, &st), MST_OK);
    assert_int_equal(bundle_load(&r, &q, 1, pool, &st), MST_OK);
    assert_true(same(&t, &q.out));
    tensor_unref(&q.out);
    bundle_reader_close(&r);
    tensor_unref(&t);
    pool_free(pool);
}

/* ---- slices ---- */

/* Rows of `t` and columns of it, cut out the slow way. */
static struct tensor block(const struct tensor *t, int64_t row, int64_t rows,
                           int64_t col, int64_t cols)
{
    struct tensor b;

    assert_int_equal(
        tensor_new(&b, (enum dtype)t->dtype, 2, (int64_t[]){ rows, cols }, &st),
        MST_OK);
    for (int64_t i = 0; i < rows; i++)
        tensor_copy_elems(&b, i * cols, t, (row + i) * t->dims[1] + col, cols);
    return b;
}

static void add_block(struct bundle_writer *w, const char *name,
                      const struct tensor *t, const char *spec)
{
    struct shape whole, shape;
    struct slice s, at;
    struct tensor b;

    assert_int_equal(
        slice_parse_spec(spec, strlen(spec), &whole, &s, &shape, &st), MST_OK);
    assert_int_equal(slice_resolve(&s, 2, whole.dims, &at, &st), MST_OK);
    b = block(t, at.start[0], at.length[0], at.start[1], at.length[1]);
    assert_int_equal(
        bundle_writer_add_slice(w, name, strlen(name), &whole, &s, &b, &st),
        MST_OK);
    tensor_unref(&b);
}

/* All slices of a tensor that was saved in three, under any name. */
static void check_cuts(struct bundle_reader *r, const char *name,
                       const struct tensor *t)
{
    struct tensor back, want;
    char spec[64];

    for (int64_t row = 0; row < 10; row++)
        for (int64_t rows = 1; rows <= 10 - row; rows++)
            for (int64_t col = 0; col < 6; col += 2)
                for (int64_t cols = 1; cols <= 6 - col; cols += 2) {
                    sprintf(spec, "10 6 %lld,%lld:%lld,%lld", (long long)row,
                            (long long)rows, (long long)col, (long long)cols);
                    assert_int_equal(load(r, name, spec, DT_INVALID, &back),
                                     MST_OK);
                    want = block(t, row, rows, col, cols);
                    assert_true(same(&want, &back));
                    tensor_unref(&back);
                    tensor_unref(&want);
                }
    assert_int_equal(load(r, name, "", DT_INVALID, &back), MST_OK);
    assert_true(same(t, &back));
    tensor_unref(&back);
}

static void test_slices_are_read_in_any_other_cut(void **state)
{
    static const enum dtype types[] = { DT_FLOAT, DT_HALF, DT_COMPLEX128,
                                        DT_STRING };
    struct tensor t[COUNT(types)];
    struct bundle_writer w;
    struct bundle_reader r;
    char name[32];

    (void)state;
    open_writer(&w);
    for (size_t i = 0; i < COUNT(types); i++) {
        t[i] = make(types[i], 2, (int64_t[]){ 10, 6 }, i);
        sprintf(name, "rows%zu", i);
        add_block(&w, name, &t[i], "10 6 0,4:-");
        add_block(&w, name, &t[i], "10 6 4,3:-");
        add_block(&w, name, &t[i], "10 6 7,3:0,6");
        sprintf(name, "cols%zu", i);
        add_block(&w, name, &t[i], "10 6 -:0,1");
        add_block(&w, name, &t[i], "10 6 -:1,3");
        add_block(&w, name, &t[i], "10 6 -:4,2");
        sprintf(name, "whole%zu", i);
        add_block(&w, name, &t[i], "10 6 -:0,6");
    }
    finish(&w);
    assert_int_equal(bundle_reader_open(&r, prefix, &st), MST_OK);
    for (size_t i = 0; i < COUNT(types); i++) {
        sprintf(name, "rows%zu", i);
        check_cuts(&r, name, &t[i]);
        sprintf(name, "cols%zu", i);
        check_cuts(&r, name, &t[i]);
        sprintf(name, "whole%zu", i);
        check_cuts(&r, name, &t[i]);
        tensor_unref(&t[i]);
    }
    bundle_reader_close(&r);
}

static void expect(struct bundle_reader *r, const char *name, const char *spec,
                   enum dtype dt, enum mst_code code, const char *text)
{
    struct tensor t;

    assert_int_equal(load(r, name, spec, dt, &t), code);
    assert_string_equal(st.msg, text);
}

/* Codes and texts that TensorFlow 2.21 gave. */
static void test_errors_are_tensorflows(void **state)
{
    struct tensor t = make(DT_FLOAT, 2, (int64_t[]){ 2, 3 }, 5);
    struct shape whole = { 2, { 2, 4 } };
    struct slice s = { 2, { 0, 0 }, { 2, 3 } };
    struct bundle_writer w;
    struct bundle_reader r;
    char want[300];

    (void)state;
    open_writer(&w);
    add(&w, "x", &t);
    add_block(&w, "over", &t, "2 3 0,2:0,2");
    add_block(&w, "over", &t, "2 3 0,2:1,2");
    add_block(&w, "gap", &t, "2 3 0,1:0,3");
    assert_int_equal(bundle_writer_add_slice(&w, "gap", 3, &whole, &s, &t, &st),
                     MST_INVALID_ARGUMENT);
    assert_int_equal(bundle_writer_add_slice(&w, "x", 1, &whole, &s, &t, &st),
                     MST_INVALID_ARGUMENT);
    assert_int_equal(bundle_writer_add(&w, "gap", 3, &t, &st),
                     MST_INVALID_ARGUMENT);
    finish(&w);
    assert_int_equal(bundle_reader_open(&r, prefix, &st), MST_OK);
    expect(&r, "y", "", DT_FLOAT, MST_NOT_FOUND,
           "Key y not found in checkpoint");
    expect(&r, "", "", DT_FLOAT, MST_NOT_FOUND, "Key  not found in checkpoint");
    expect(&r, "x", "", DT_INT32, MST_INVALID_ARGUMENT,
           "tensor_name = x; expected dtype int32 does not equal original "
           "dtype float");
    expect(&r, "x", "3 2 -:-", DT_FLOAT, MST_INVALID_ARGUMENT,
           "tensor_name = x; shape in shape_and_slice spec [3,2] does not "
           "match the shape stored in checkpoint: [2,3]");
    expect(&r, "over", "", DT_FLOAT, MST_INTERNAL,
           "Overlapping slices: existing slice = 0,2:0,2, new slice = 0,2:1,2");
    expect(&r, "gap", "", DT_FLOAT, MST_INVALID_ARGUMENT,
           "Does not have sufficient slices for partitioned tensor gap to "
           "restore in slice_spec: -:-");
    expect(&r, "gap", "2 3 1,1:0,1", DT_FLOAT, MST_INVALID_ARGUMENT,
           "Does not have sufficient slices for partitioned tensor gap to "
           "restore in slice_spec: 1,1:0,1");
    bundle_reader_close(&r);
    sprintf(want, "%s/none.index; No such file or directory", dir);
    strcpy(prefix + strlen(dir), "/none");
    assert_int_equal(bundle_reader_open(&r, prefix, &st), MST_NOT_FOUND);
    assert_string_equal(st.msg, want);
    tensor_unref(&t);
}

/* ---- merging ---- */

static void test_shards_merge_into_one(void **state)
{
    struct tensor t = make(DT_INT64, 2, (int64_t[]){ 10, 6 }, 9), back;
    char shards[3][160], final[160], *list[3], spec[128];
    struct bundle_merge_options delete = { .delete_dirs = true };
    struct bundle_reader r;

    (void)state;
    sprintf(final, "%s/deep/er/final", dir);
    for (int i = 0; i < 3; i++) {
        struct bundle_writer w;

        sprintf(shards[i], "%s/model_temp/part-%05d-of-00003", dir, i);
        list[i] = shards[i];
        assert_int_equal(bundle_writer_open(&w, shards[i], &st), MST_OK);
        sprintf(spec, "own%d", i);
        add(&w, spec, &t);
        sprintf(spec, "10 6 -:%d,2", 2 * i);
        add_block(&w, "w", &t, spec);
        finish(&w);
    }
    assert_int_equal(bundle_merge(list, 3, final, delete, &st), MST_OK);
    sprintf(spec, "%s/model_temp", dir);
    assert_int_equal(files_in(spec), -1);
    strcpy(strrchr(strcpy(prefix, final), '/'), "");
    assert_int_equal(files_in(prefix), 4);
    assert_int_equal(bundle_reader_open(&r, final, &st), MST_OK);
    assert_int_equal(r.header.shards, 3);
    check_cuts(&r, "w", &t);
    assert_int_equal(load(&r, "own2", "", DT_INT64, &back), MST_OK);
    assert_true(same(&t, &back));
    tensor_unref(&back);
    bundle_reader_close(&r);
    tensor_unref(&t);
}

static void test_merge_refuses_duplicates_and_absent_shards(void **state)
{
    struct tensor t = make(DT_INT64, 0, NULL, 9);
    char shards[3][160], final[160], *list[3];
    struct bundle_merge_options none = { 0 }, allow = { .allow_missing = true };

    (void)state;
    sprintf(final, "%s/final", dir);
    for (int i = 0; i < 3; i++) {
        struct bundle_writer w;

        sprintf(shards[i], "%s/part%d", dir, i);
        list[i] = shards[i];
        if (i == 2)
            continue;
        assert_int_equal(bundle_writer_open(&w, shards[i], &st), MST_OK);
        add(&w, "x", &t);
        finish(&w);
    }
    assert_int_equal(bundle_merge(list, 2, final, none, &st),
                     MST_INVALID_ARGUMENT);
    assert_non_null(strstr(st.msg, "Duplicate tensor keyed by x encountered, "
                                   "when merging prefix: "));
    assert_int_equal(bundle_merge(list + 1, 2, final, none, &st),
                     MST_INVALID_ARGUMENT);
    assert_non_null(strstr(st.msg, "allow_missing_files was set to false"));
    assert_int_equal(bundle_merge(list + 2, 1, final, allow, &st),
                     MST_INVALID_ARGUMENT);
    assert_int_equal(bundle_merge(list, 0, final, none, &st),
                     MST_INVALID_ARGUMENT);
    assert_int_equal(files_in(dir), 4); /* nothing has moved */
    assert_int_equal(bundle_merge(list + 1, 2, final, allow, &st), MST_OK);
    assert_int_equal(files_in(dir), 4);
    tensor_unref(&t);
}

/* ---- damage ---- */

static struct bytes slurp(const char *suffix)
{
    struct bytes b = { 0 };
    struct file_in in;
    char path[200];

    sprintf(path, "%s%s", prefix, suffix);
    assert_int_equal(file_in_open(&in, path, &st), MST_OK);
    b.data = mem_new((size_t)in.size);
    b.len = (size_t)in.size;
    assert_int_equal(file_in_read(&in, 0, b.data, b.len, &st), MST_OK);
    file_in_close(&in);
    return b;
}

static struct tensor plain, strings;

/* Loads everything from memory; on success it must be what was saved. */
static enum mst_code load_memory(const struct bytes *index,
                                 const struct bytes *data, bool unchecked)
{
    struct bundle_read q[] = {
        { .name = "plain", .name_len = 5 },
        { .name = "strings", .name_len = 7 },
        { .name = "cut", .name_len = 3 },
        { .name = "cut", .name_len = 3, .spec = "10 6 3,2:2,3", .spec_len = 12 }
    };
    struct bundle_reader r;
    enum mst_code rc;

    rc = bundle_reader_open_memory(&r, index->data, index->len, data->data,
                                   data->len, unchecked, &st);
    if (rc)
        return rc;
    rc = bundle_load(&r, q, COUNT(q), NULL, &st);
    for (size_t i = 0; i < COUNT(q); i++) {
        if (!rc && !unchecked && i < 3)
            assert_true(same(&q[i].out, i == 1 ? &strings : &plain));
        tensor_unref(&q[i].out);
    }
    bundle_reader_close(&r);
    return rc;
}

static void write_small(struct bytes *index, struct bytes *data)
{
    struct bundle_writer w;

    plain = make(DT_INT16, 2, (int64_t[]){ 10, 6 }, 1);
    strings = make(DT_STRING, 1, (int64_t[]){ 4 }, 2);
    open_writer(&w);
    add(&w, "plain", &plain);
    add(&w, "strings", &strings);
    add_block(&w, "cut", &plain, "10 6 0,4:-");
    add_block(&w, "cut", &plain, "10 6 4,6:-");
    finish(&w);
    *index = slurp(".index");
    *data = slurp(".data-00000-of-00001");
}

static void test_damage_at_every_byte_is_noticed(void **state)
{
    struct bytes index, data;

    (void)state;
    write_small(&index, &data);
    assert_int_equal(load_memory(&index, &data, false), MST_OK);
    for (size_t i = 0; i < index.len * 8; i++) {
        enum mst_code rc;

        index.data[i / 8] ^= (uint8_t)(1 << i % 8);
        rc = load_memory(&index, &data, false);
        assert_true(rc == MST_OK || rc == MST_DATA_LOSS);
        /* Without checksums the damage gets deeper, and ends in some error or
         * other values, never in a crash. */
        (void)!load_memory(&index, &data, true);
        index.data[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    for (size_t i = 0; i < data.len; i++) {
        data.data[i] ^= 0x10;
        assert_int_equal(load_memory(&index, &data, false), MST_DATA_LOSS);
        (void)!load_memory(&index, &data, true);
        data.data[i] ^= 0x10;
    }
    bytes_done(&index);
    bytes_done(&data);
    tensor_unref(&plain);
    tensor_unref(&strings);
}

static void test_truncation_at_every_byte_is_noticed(void **state)
{
    struct bytes index, data, cut;

    (void)state;
    write_small(&index, &data);
    for (size_t i = 0; i < index.len; i++) {
        cut = (struct bytes){ .data = mem_copy(index.data, i), .len = i };
        assert_int_equal(load_memory(&cut, &data, false), MST_DATA_LOSS);
        bytes_done(&cut);
    }
    for (size_t i = 0; i < data.len; i++) {
        cut = (struct bytes){ .data = mem_copy(data.data, i), .len = i };
        assert_int_equal(load_memory(&index, &cut, false), MST_DATA_LOSS);
        assert_int_equal(load_memory(&index, &cut, true), MST_DATA_LOSS);
        bytes_done(&cut);
    }
    bytes_done(&index);
    bytes_done(&data);
    tensor_unref(&plain);
    tensor_unref(&strings);
}

/* An index with one entry whose numbers are as we please. */
static enum mst_code load_entry(const struct bundle_entry *e)
{
    struct bundle_header header = { .shards = 1, .producer = 1 };
    struct file_out out = FILE_OUT_INIT;
    struct bytes data = { 0 }, index;
    struct bundle_index x;
    struct bundle_reader r;
    struct tensor t;
    enum mst_code rc;
    char path[200];

    bytes_put(&data, "0123456789abcdef", 16);
    sprintf(path, "%s.index", prefix);
    bundle_index_init(&x);
    *bundle_index_add(&x, "x", 1) = *e;
    assert_int_equal(file_out_open(&out, path, &st), MST_OK);
    assert_int_equal(bundle_index_write(&x, &header, &out, &st), MST_OK);
    assert_int_equal(file_out_commit(&out, &st), MST_OK);
    bundle_index_done(&x);
    index = slurp(".index");
    assert_int_equal(bundle_reader_open_memory(&r, index.data, index.len,
                                               data.data, data.len, true, &st),
                     MST_OK);
    rc = load(&r, "x", "", DT_INVALID, &t);
    tensor_unref(&t);
    bundle_reader_close(&r);
    bytes_done(&index);
    bytes_done(&data);
    return rc;
}

static void test_absurd_numbers_allocate_nothing(void **state)
{
    int64_t huge = (int64_t)1 << 45;

    (void)state;
    assert_int_equal(
        load_entry(&(struct bundle_entry){
            .dtype = DT_FLOAT, .ndim = 1, .dims = { 4 }, .size = 16 }),
        MST_OK);
    assert_int_equal(load_entry(&(struct bundle_entry){ .dtype = DT_FLOAT,
                                                        .ndim = 1,
                                                        .dims = { 4 },
                                                        .size = 16,
                                                        .offset = 1 }),
                     MST_DATA_LOSS);
    assert_int_equal(
        load_entry(&(struct bundle_entry){ .dtype = DT_INT8,
                                           .ndim = 1,
                                           .dims = { huge },
                                           .size = (uint64_t)huge }),
        MST_DATA_LOSS);
    assert_int_equal(
        load_entry(&(struct bundle_entry){
            .dtype = DT_STRING, .ndim = 1, .dims = { huge }, .size = 16 }),
        MST_DATA_LOSS);
    assert_int_equal(
        load_entry(&(struct bundle_entry){
            .dtype = DT_INT8, .ndim = 2, .dims = { huge, huge }, .size = 16 }),
        MST_DATA_LOSS);
    assert_int_equal(load_entry(&(struct bundle_entry){
                         .dtype = DT_INT8, .ndim = 1, .dims = { -5 } }),
                     MST_DATA_LOSS);
    assert_int_equal(load_entry(&(struct bundle_entry){
                         .dtype = DT_INT8, .shard = 7, .size = 1 }),
                     MST_DATA_LOSS);
    assert_int_equal(load_entry(&(struct bundle_entry){
                         .dtype = DT_INT8, .shard = -1, .size = 1 }),
                     MST_DATA_LOSS);
    assert_int_equal(load_entry(&(struct bundle_entry){ .dtype = DT_VARIANT }),
                     MST_UNIMPLEMENTED);
    assert_int_equal(load_entry(&(struct bundle_entry){ .dtype = 77 }),
                     MST_UNIMPLEMENTED);
}

/* ---- a variable that changes while it is saved ---- */

struct changing {
    struct tensor t;
    atomic_bool stop;
};

RACY static void change(struct tensor *t, uint32_t to)
{
    volatile uint32_t *at = t->data;

    for (int64_t i = 0; i < t->count; i++)
        at[i] = to;
}

static void *keep_changing(void *arg)
{
    struct changing *c = arg;

    for (uint32_t n = 0; !atomic_load(&c->stop); n++)
        change(&c->t, n);
    return NULL;
}

static void
test_a_changing_tensor_has_the_checksum_of_what_was_saved(void **state)
{
    struct changing c = { 0 };
    struct bundle_writer w;
    struct bundle_reader r;
    struct tensor back;
    pthread_t thread;
    char name[8];

    (void)state;
    c.t = make(DT_INT32, 1, (int64_t[]){ 100000 }, 1);
    assert_int_equal(pthread_create(&thread, NULL, keep_changing, &c), 0);
    open_writer(&w);
    for (int i = 0; i < 20; i++) {
        sprintf(name, "v%d", i);
        add(&w, name, &c.t);
    }
    finish(&w);
    atomic_store(&c.stop, true);
    pthread_join(thread, NULL);
    assert_int_equal(bundle_reader_open(&r, prefix, &st), MST_OK);
    for (int i = 0; i < 20; i++) {
        sprintf(name, "v%d", i);
        assert_int_equal(load(&r, name, "", DT_INT32, &back), MST_OK);
        tensor_unref(&back);
    }
    bundle_reader_close(&r);
    tensor_unref(&c.t);
}

/* ---- trouble with the file system ---- */

static void test_failed_write_leaves_nothing_behind(void **state)
{
    struct tensor t = make(DT_FLOAT, 1, (int64_t[]){ 1 << 20 }, 1);
    struct rlimit old, small;
    struct bundle_writer w;
    enum mst_code rc;

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    small = old;
    small.rlim_cur = 1 << 20;
    open_writer(&w);
    setrlimit(RLIMIT_FSIZE, &small);
    rc = bundle_writer_add(&w, "x", 1, &t, &st);
    if (!rc)
        rc = bundle_writer_finish(&w, &st);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(rc, MST_OUT_OF_RANGE);
    assert_non_null(strstr(st.msg, "; File too large"));
    bundle_writer_done(&w);
    assert_int_equal(files_in(dir), 0);
    tensor_unref(&t);
}

static void test_missing_directories_are_made(void **state)
{
    struct bundle_writer w;

    (void)state;
    strcat(prefix, "/a//b/c/x");
    open_writer(&w);
    finish(&w);
    *strrchr(prefix, '/') = '\0';
    assert_int_equal(files_in(prefix), 2);
    strcat(prefix, "/x.index/y");
    assert_int_equal(bundle_writer_open(&w, prefix, &st),
                     MST_FAILED_PRECONDITION);
    assert_non_null(strstr(st.msg, "; Not a directory"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_all_types_and_shapes_come_back),
        TEST(test_objects_are_refused),
        TEST(test_thousands_of_tensors_come_back),
        TEST(test_large_tensor_comes_back_on_several_threads),
        TEST(test_slices_are_read_in_any_other_cut),
        TEST(test_errors_are_tensorflows),
        TEST(test_shards_merge_into_one),
        TEST(test_merge_refuses_duplicates_and_absent_shards),
        TEST(test_damage_at_every_byte_is_noticed),
        TEST(test_truncation_at_every_byte_is_noticed),
        TEST(test_absurd_numbers_allocate_nothing),
        TEST(test_a_changing_tensor_has_the_checksum_of_what_was_saved),
        TEST(test_failed_write_leaves_nothing_behind),
        TEST(test_missing_directories_are_made),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
