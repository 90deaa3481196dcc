#include "store/bundle_plan.h"

#include <stdlib.h>

#include "base/crc32c.h"
#include "base/mem.h"
#include "store/table_writer.h"

/* ---- looking up ---- */

static enum mst_code find_all(struct bundle_reader *r,
                              struct bundle_read *const *reads, int count,
                              struct status *st)
{
    bool mismatch = false;

    for (int i = 0; i < count; i++) {
        struct bundle_read *q = reads[i];
        enum mst_code rc =
            bundle_reader_find(r, q->name, q->name_len, &q->entry, st);

        if (rc)
            return rc;
    }
    for (int i = 0; i < count; i++) {
        struct bundle_read *q = reads[i];

        if (q->dtype == DT_INVALID || (int)q->dtype == q->entry.dtype)
            continue;
        if (!mismatch)
            status_set(st, MST_INVALID_ARGUMENT, "%s", "");
        status_append(st,
                      "%stensor_name = %.*s; expected dtype %s does not equal "
                      "original dtype %s",
                      mismatch ? "\n" : "", bundle_entry_shown(q->name_len),
                      q->name, dtype_name((int)q->dtype),
                      dtype_name(q->entry.dtype));
        mismatch = true;
    }
    return mismatch ? MST_INVALID_ARGUMENT : MST_OK;
}

/* What is wanted: the slice as asked for, the same resolved. */
static enum mst_code parse_want(const struct bundle_read *q,
                                struct slice *ret_slice,
                                struct slice *ret_resolved, struct status *st)
{
    const struct bundle_entry *e = &q->entry;
    char spec_text[SHAPE_TEXT_MAX], text[SHAPE_TEXT_MAX];
    struct shape whole, shape;
    enum mst_code rc;

    if (e->ndim > TENSOR_RANK_MAX)
        return status_set(st, MST_UNIMPLEMENTED,
                          "Tensors of rank %d are not supported, only up to "
                          "%d: %.*s",
                          e->ndim, TENSOR_RANK_MAX,
                          bundle_entry_shown(q->name_len), q->name);
    if (e->dtype != DT_STRING && !dtype_is_plain((enum dtype)e->dtype))
        return status_set(st, MST_UNIMPLEMENTED,
                          "Restoring data type %s not yet supported: tensor "
                          "%.*s",
                          dtype_name(e->dtype), bundle_entry_shown(q->name_len),
                          q->name);
    *ret_slice = slice_all(e->ndim);
    if (!q->spec_len)
        return slice_resolve(ret_slice, e->ndim, e->dims, ret_resolved, st);
    rc = slice_parse_spec(q->spec, q->spec_len, &whole, ret_slice, &shape, st);
    if (rc)
        return rc;
    if (whole.ndim != e->ndim ||
        memcmp(whole.dims, e->dims, (size_t)e->ndim * sizeof(e->dims[0])))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "tensor_name = %.*s; shape in shape_and_slice spec "
                          "%s does not match the shape stored in checkpoint: "
                          "%s",
                          bundle_entry_shown(q->name_len), q->name,
                          shape_text(whole.ndim, whole.dims, spec_text),
                          shape_text(e->ndim, e->dims, text));
    return slice_resolve(ret_slice, e->ndim, e->dims, ret_resolved, st);
}

/* ---- planning ---- */

/* What the file must have for a tensor of that shape. */
static enum mst_code check_size(const struct bundle_read *q,
                                const struct bundle_entry *e, int64_t count,
                                const struct file_in *file, struct status *st)
{
    uint64_t want = (uint64_t)count * dtype_size((enum dtype)e->dtype);
    /* Of a string at least its length's byte. */
    uint64_t least = (uint64_t)count + (count ? 4 : 0);

    if (e->dtype == DT_STRING ? e->size < least : e->size != want)
        return status_set(
            st, MST_DATA_LOSS,
            "Invalid size in bundle entry: key %.*s; stored size "
            "%llu; expected size%s %llu",
            bundle_entry_shown(q->name_len), q->name,
            (unsigned long long)e->size,
            e->dtype == DT_STRING ? " is at least" : "",
            (unsigned long long)(e->dtype == DT_STRING ? least : want));
    if (e->offset > file->size || e->size > file->size - e->offset)
        return status_set(st, MST_DATA_LOSS,
                          "%s is cut off: tensor %.*s takes %llu bytes at "
                          "%llu, the file has %llu",
                          file->path, bundle_entry_shown(q->name_len), q->name,
                          (unsigned long long)e->size,
                          (unsigned long long)e->offset,
                          (unsigned long long)file->size);
    return MST_OK;
}

/* e describes the bytes of the stored slice `from`. */
static enum mst_code add_part(struct bundle_plan *plan, struct bundle_reader *r,
                              struct bundle_read *q,
                              const struct bundle_entry *e,
                              const struct slice *from, const struct slice *to,
                              struct status *st)
{
    int64_t count = slice_count(from);
    const struct file_in *file;
    struct slice_walk walk;
    struct bundle_part *p;
    enum mst_code rc;

    rc = bundle_reader_file(r, e->shard, &file, st);
    if (!rc)
        rc = check_size(q, e, count, file, st);
    if (rc)
        return rc;
    slice_walk_init(&walk, from, to);
    p = MEM_PUSH(plan->parts, plan->count, plan->room);
    *p = (struct bundle_part){
        .file = file,
        .offset = e->offset,
        .size = e->size,
        .crc = crc32c_unmask(e->crc),
        .shard = e->shard,
        .read = q,
        .from = *from,
        .to = *to,
        .direct = e->dtype != DT_STRING &&
                  (!count || (!walk.none && walk.run == count)),
        .to_elem = walk.to,
    };
    return MST_OK;
}

/* The entry of a stored slice that is wanted, at least in part. */
static enum mst_code add_slice(struct bundle_plan *plan,
                               struct bundle_reader *r, struct bundle_read *q,
                               const struct slice *stored,
                               const struct slice *from,
                               const struct slice *want, struct status *st)
{
    struct bundle_entry e = { 0 };
    struct bytes key = { 0 };
    enum mst_code rc;

    slice_put_key(&key, q->name, q->name_len, stored);
    rc = bundle_reader_find(r, key.data, key.len, &e, st);
    if (rc == MST_NOT_FOUND) {
        char text[SLICE_TEXT_MAX];

        rc = status_set(st, MST_DATA_LOSS,
                        "Slice %s of tensor %.*s not found in checkpoint",
                        slice_text(stored, text),
                        bundle_entry_shown(q->name_len), q->name);
    }
    if (!rc &&
        (e.slices.len || e.dtype != q->entry.dtype || e.ndim != from->ndim ||
         memcmp(e.dims, from->length, (size_t)from->ndim * sizeof(e.dims[0]))))
        rc = status_set(st, MST_DATA_LOSS,
                        "A slice of tensor %.*s is not of the type or shape "
                        "that the checkpoint says it has",
                        bundle_entry_shown(q->name_len), q->name);
    if (!rc)
        rc = add_part(plan, r, q, &e, from, want, st);
    bundle_entry_done(&e);
    bytes_done(&key);
    return rc;
}

/* The parts from `first` on are those of this read; none may meet another. */
static enum mst_code check_apart(const struct bundle_plan *plan, int first,
                                 const struct slice *from, struct status *st)
{
    char text[SLICE_TEXT_MAX], other[SLICE_TEXT_MAX];
    struct slice both;

    for (int i = first; i < plan->count; i++)
        if (slice_intersect(&plan->parts[i].from, from, &both))
            return status_set(st, MST_INTERNAL,
                              "Overlapping slices: existing slice = %s, new "
                              "slice = %s",
                              slice_text(&plan->parts[i].from, text),
                              slice_text(from, other));
    return MST_OK;
}

static enum mst_code plan_slices(struct bundle_plan *plan,
                                 struct bundle_reader *r, struct bundle_read *q,
                                 const struct slice *asked,
                                 const struct slice *want, struct status *st)
{
    struct pb_in at = bundle_entry_slices(&q->entry);
    int64_t missing = slice_count(want);
    struct slice stored, from, both;
    int first = plan->count;
    char text[SLICE_TEXT_MAX];
    enum mst_code rc;

    while (bundle_entry_next_slice(&at, &stored)) {
        rc = slice_resolve(&stored, q->entry.ndim, q->entry.dims, &from, st);
        if (rc)
            return rc;
        if (!slice_intersect(&from, want, &both))
            continue;
        rc = check_apart(plan, first, &from, st);
        if (!rc)
            rc = add_slice(plan, r, q, &stored, &from, want, st);
        if (rc)
            return rc;
        missing -= slice_count(&both);
    }
    if (at.bad)
        return status_set(st, MST_DATA_LOSS,
                          "Entry for key %.*s not parseable.",
                          bundle_entry_shown(q->name_len), q->name);
    if (missing)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Does not have sufficient slices for partitioned "
                          "tensor %.*s to restore in slice_spec: %s",
                          bundle_entry_shown(q->name_len), q->name,
                          slice_text(asked, text));
    return MST_OK;
}

/* What it takes for one read, and its tensor. */
static enum mst_code plan_one(struct bundle_plan *plan, struct bundle_reader *r,
                              struct bundle_read *q, struct status *st)
{
    const struct bundle_entry *e = &q->entry;
    struct slice asked, want, all;
    enum mst_code rc;

    rc = parse_want(q, &asked, &want, st);
    if (rc)
        return rc;
    if (e->slices.len) {
        rc = plan_slices(plan, r, q, &asked, &want, st);
    } else {
        all = slice_all(e->ndim);
        rc = slice_resolve(&all, e->ndim, e->dims, &all, st);
        if (!rc)
            rc = add_part(plan, r, q, e, &all, &want, st);
    }
    if (rc)
        return rc;
    return tensor_new(&q->out, (enum dtype)e->dtype, want.ndim, want.length,
                      st);
}

/* ---- all of it ---- */

static int by_place(const void *a, const void *b)
{
    const struct bundle_part *x = a, *y = b;

    if (x->shard != y->shard)
        return x->shard < y->shard ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static int by_name(const void *a, const void *b)
{
    const struct bundle_read *const *x = a, *const *y = b;

    return table_compare((*x)->name, (*x)->name_len, (*y)->name,
                         (*y)->name_len);
}

enum mst_code bundle_plan_make(struct bundle_plan *plan,
                               struct bundle_reader *r,
                               struct bundle_read *reads, int count,
                               struct status *st)
{
    struct bundle_read **order = mem_array((size_t)count, sizeof(*order));
    enum mst_code rc;

    *plan = (struct bundle_plan){ 0 };
    /* In the order of the index each of its blocks is read once; and
     * TensorFlow, too, complains in that order. */
    for (int i = 0; i < count; i++)
        order[i] = &reads[i];
    qsort(order, (size_t)count, sizeof(*order), by_name);
    rc = find_all(r, order, count, st);
    for (int i = 0; i < count && !rc; i++)
        rc = plan_one(plan, r, order[i], st);
    if (plan->count)
        qsort(plan->parts, (size_t)plan->count, sizeof(*plan->parts), by_place);
    mem_free(order);
    return rc;
}

void bundle_plan_done(struct bundle_plan *plan)
{
    mem_free(plan->parts);
    *plan = (struct bundle_plan){ 0 };
}
