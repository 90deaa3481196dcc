/*
 * Variants in messages, in the bytes that TensorFlow writes and reads. The
 * samples are what its SerializeTensor gave.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/boxed.h"
#include "tensor/list.h"
#include "tensor/number.h"
#include "tensor/optional.h"
#include "tensor/proto.h"
#include "tensor/ragged.h"

#define LIST     "tensorflow::TensorList"
#define OPTIONAL "tensorflow::data::Optional"
/* -1 as a varint; a TensorShapeProto of unknown rank. */
#define ANY     "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
#define UNKNOWN "\x18\x01"

static struct tensor scalar(enum dtype dt, struct object *o)
{
    struct status st = STATUS_INIT;
    struct tensor t;

    assert_int_equal(tensor_new_scalar(&t, dt, &st), MST_OK);
    if (dt == DT_VARIANT)
        *tensor_object(&t, 0) = o;
    else
        *TENSOR_DATA(&t, float) = 1;
    return t;
}

static struct tensor_list *new_list(enum dtype dt)
{
    return tensor_list_new(dt, &(struct shape){ .ndim = -1 }, -1);
}

/* The whole message. The caller ends it. */
static void write(struct pb_out *o, const struct tensor *t)
{
    struct tensor_proto_size size = tensor_proto_size(t);

    pb_out_init(o);
    tensor_proto_put_head(o, t, size);
    tensor_proto_put_content(o, t);
    assert_int_equal(o->len, size.head + size.content);
}

static struct tensor read(const void *data, size_t len)
{
    struct status st = STATUS_INIT;
    struct tensor t;

    if (tensor_from_proto(&t, data, len, NULL, &st))
        fail_msg("%s", st.msg);
    return t;
}

/* Written, read, and written to the same bytes. What was given is ended. */
static struct tensor there_and_back(struct tensor t)
{
    struct pb_out o, again;
    struct tensor back;

    write(&o, &t);
    tensor_unref(&t);
    back = read(o.data, o.len);
    write(&again, &back);
    assert_int_equal(o.len, again.len);
    assert_memory_equal(o.data, again.data, o.len);
    pb_out_done(&o);
    pb_out_done(&again);
    return back;
}

/* One variant by its parts; tensors are whole fields. */
static void put_variant(struct pb_out *o, uint32_t field, const char *name,
                        const void *meta, size_t meta_len, const void *tensors,
                        size_t len)
{
    struct pb_out v;

    pb_out_init(&v);
    pb_put_bytes(&v, 1, name, strlen(name));
    pb_put_bytes(&v, 2, meta, meta_len);
    pb_put_raw(&v, tensors, len);
    pb_put_bytes(o, field, v.data, v.len);
    pb_out_done(&v);
}

static enum mst_code try_variant(struct tensor *t, const char *name,
                                 const void *meta, size_t meta_len,
                                 const void *tensors, size_t len)
{
    struct status st = STATUS_INIT;
    struct pb_out o;
    enum mst_code rc;

    pb_out_init(&o);
    pb_put_uint(&o, 1, DT_VARIANT);
    put_variant(&o, 15, name, meta, meta_len, tensors, len);
    rc = tensor_from_proto(t, o.data, o.len, NULL, &st);
    pb_out_done(&o);
    return rc;
}

#define TRY(t, name, meta, tensors)                                            \
    try_variant(t, name, meta, sizeof(meta) - 1, tensors, sizeof(tensors) - 1)

/* A float that is 1, and an int32, as fields of a variant. */
#define ONE   "\x1a\x08\x08\x01\x22\x04\0\0\x80\x3f"
#define INT32 "\x1a\x04\x08\x03\x38\x07"

static void assert_refused(const char *name, const char *meta, size_t meta_len,
                           const char *tensors, size_t len)
{
    struct tensor t;

    assert_int_equal(try_variant(&t, name, meta, meta_len, tensors, len),
                     MST_INVALID_ARGUMENT);
}

#define REFUSED(name, meta, tensors)                                           \
    assert_refused(name, meta, sizeof(meta) - 1, tensors, sizeof(tensors) - 1)

static const struct tensor_list *list_of(const struct tensor *t)
{
    const struct object *o = *tensor_object(t, 0);

    assert_ptr_equal(o->kind, &tensor_list_kind);
    return CONTAINER(o, struct tensor_list, o);
}

/* ---- what TensorFlow wrote ---- */

#define SAMPLE(text) text, sizeof(text) - 1

static void test_list_is_read_as_tensorflow_writes_it(void **state)
{
    /* Reserved with 4 elements of int64, of which [2] was set to 9. */
    struct tensor t = read(SAMPLE("\x08\x15\x12\x00\x22\x33\x32\x0a\x16" LIST
                                  "\x12\x0f\x03\x00\x01\x03\x09" ANY
                                  "\x1a\x07\x08\x09\x12\x00\x52\x01\x09"));
    const struct tensor_list *l = list_of(&t);

    assert_int_equal(l->count, 4);
    assert_int_equal(l->dtype, DT_INT64);
    assert_int_equal(l->shape.ndim, 0);
    assert_int_equal(l->count_max, -1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(tensor_set(&l->items[i]), i == 2);
    assert_int_equal(*TENSOR_DATA(&l->items[2], int64_t), 9);
    t = there_and_back(t);
    tensor_unref(&t);
}

static void test_list_in_a_list_is_read_from_fields(void **state)
{
    struct tensor t =
        read(SAMPLE("\x08\x15\x12\x00\x22\x61\x60\x0a\x16" LIST
                    "\x12\x0e\x00\x15" ANY UNKNOWN
                    "\x1a\x36\x08\x15\x12\x00\x7a\x30\x0a\x16" LIST
                    "\x12\x0c\x00\x07" ANY "\x1a\x08\x08\x07\x12\x00\x42\x02"
                    "ab"));
    const struct tensor_list *l = list_of(&t), *in;

    assert_int_equal(l->count, 1);
    assert_int_equal(l->shape.ndim, -1);
    in = list_of(&l->items[0]);
    assert_int_equal(in->dtype, DT_STRING);
    assert_int_equal(in->count, 1);
    assert_int_equal(tensor_str(&in->items[0], 0)->len, 2);
    t = there_and_back(t);
    tensor_unref(&t);
}

static void test_optionals_are_read_as_tensorflow_writes_them(void **state)
{
    struct tensor t = read(
        SAMPLE("\x08\x15\x12\x00\x22\x20\x1f\x0a\x1a" OPTIONAL "\x12\x01\x00"));
    const struct optional *v =
        CONTAINER(*tensor_object(&t, 0), struct optional, o);

    assert_ptr_equal(v->o.kind, &optional_kind);
    assert_int_equal(v->count, -1);
    t = there_and_back(t);
    tensor_unref(&t);
    t = read(
        SAMPLE("\x08\x15\x12\x00\x22\x3a\x39\x0a\x1a" OPTIONAL
               "\x12\x01\x01\x1a\x0a\x08\x01\x12\x00\x2a\x04\0\0\x40\x40"
               "\x1a\x0c\x08\x03\x12\x04\x12\x02\x08\x02\x3a\x02\x01\x02"));
    v = CONTAINER(*tensor_object(&t, 0), struct optional, o);
    assert_int_equal(v->count, 2);
    assert_float_equal(*TENSOR_DATA(&v->values[0], float), 3, 0);
    assert_int_equal(TENSOR_DATA(&v->values[1], int32_t)[1], 2);
    t = there_and_back(t);
    tensor_unref(&t);
}

static void test_ragged_values_are_read_as_tensorflow_writes_them(void **state)
{
    struct tensor t = read(
        SAMPLE("\x08\x15\x12\x04\x12\x02\x08\x02\x22\x50\x25\x29\x0a\x13"
               "RaggedTensorVariant\x1a\x0e\x08\x01\x12\x04\x12\x02\x08\x01"
               "\x2a\x04\0\0\x80\x3f\x0a\x13"
               "RaggedTensorVariant\x1a\x12\x08\x01\x12\x04\x12\x02\x08\x02"
               "\x2a\x08\0\0\0\x40\0\0\x40\x40"));
    const struct ragged_value *r =
        CONTAINER(*tensor_object(&t, 1), struct ragged_value, o);

    assert_int_equal(t.count, 2);
    assert_ptr_equal(r->o.kind, &ragged_kind);
    assert_int_equal(r->rank, 0);
    assert_float_equal(TENSOR_DATA(&r->values, float)[1], 3, 0);
    t = there_and_back(t);
    tensor_unref(&t);
}

static void test_tensors_and_numbers_come_back(void **state)
{
    struct tensor x = scalar(DT_FLOAT, NULL), t;
    struct object *o = boxed_new(&x);

    tensor_unref(&x);
    t = there_and_back(scalar(DT_VARIANT, o));
    assert_float_equal(*TENSOR_DATA(boxed_get(*tensor_object(&t, 0)), float), 1,
                       0);
    tensor_unref(&t);
    assert_int_equal(TRY(&t, "double", "\0\0\0\0\0\0\xf0\x3f", ""), MST_OK);
    t = there_and_back(t);
    assert_float_equal(
        *TENSOR_DATA(&number_of(*tensor_object(&t, 0))->value, double), 1, 0);
    tensor_unref(&t);
    assert_int_equal(TRY(&t, "bool", "\x07", ""), MST_OK);
    t = there_and_back(t);
    assert_int_equal(
        *TENSOR_DATA(&number_of(*tensor_object(&t, 0))->value, uint8_t), 1);
    tensor_unref(&t);
}

static void test_what_is_not_given_holds_nothing(void **state)
{
    struct tensor t = read(SAMPLE("\x08\x15\x12\x04\x12\x02\x08\x02\x7a\x0b"
                                  "\x0a\x03int\x12\x04\x05\0\0\0"));

    assert_non_null(*tensor_object(&t, 0));
    assert_null(*tensor_object(&t, 1));
    t = there_and_back(t);
    assert_null(*tensor_object(&t, 1));
    tensor_unref(&t);
}

/* ---- what cannot be read ---- */

static void test_lists_that_contradict_themselves_are_refused(void **state)
{
    struct tensor t;

    assert_int_equal(TRY(&t, LIST, "\0\x01" ANY UNKNOWN, ONE), MST_OK);
    tensor_unref(&t);
    REFUSED(LIST, "", ONE);
    REFUSED(LIST, "\0\x01", ONE);                        /* cut */
    REFUSED(LIST, "\0\x01" ANY "\xff\xff", ONE);         /* no shape */
    REFUSED(LIST, "\0\x03" ANY UNKNOWN, ONE);            /* another type */
    REFUSED(LIST, "\0\x01" ANY "\x12\x02\x08\x02", ONE); /* another shape */
    REFUSED(LIST, "\0\x01" ANY UNKNOWN, ONE INT32);      /* two types */
    REFUSED(LIST, "\0\x63" ANY UNKNOWN, "");             /* no type */
    REFUSED(LIST, "\0\x65" ANY UNKNOWN, "");             /* a reference */
    REFUSED(LIST, "\x01\x02\x01" ANY UNKNOWN, ONE);      /* beyond the end */
    REFUSED(LIST, "\x02\x01\x01\x01" ANY UNKNOWN, ONE);  /* twice */
    REFUSED(LIST, "\x02\x02\0\x01" ANY UNKNOWN, ONE);    /* falling */
    REFUSED(LIST, "\x7f\0\x01" ANY UNKNOWN, ONE);        /* more than are */
    REFUSED(LIST, ANY "\0\x01" ANY UNKNOWN, ONE);
    REFUSED(LIST, "\0\x01" ANY UNKNOWN, "\x1a\x05\x08\x01\x22\x01z");
    REFUSED(LIST, "\0\x14" ANY UNKNOWN, "\x1a\x02\x08\x14"); /* a handle */
}

static void test_other_variants_are_refused_when_they_are_broken(void **state)
{
    REFUSED(OPTIONAL, "", ONE);
    REFUSED(OPTIONAL, "\x01\x01", ONE);
    REFUSED(OPTIONAL, "\0", ONE);
    REFUSED("RaggedTensorVariant", "", "");
    REFUSED("tensorflow::Tensor", "", "");
    REFUSED("tensorflow::Tensor", "", ONE ONE);
    REFUSED("int", "\x01\x02\x03", "");
    REFUSED("double", "", "");
    REFUSED("int64", "\0\0\0\0\0\0\0\0", "");
    REFUSED("tensorflow::DatasetVariantWrapper", "", "");
    REFUSED("nosuch", "", ONE);
    REFUSED("int", "\0\0\0\0", "\x1a\x7f\x08");
}

static void test_content_must_hold_all_lengths_and_all_bytes(void **state)
{
    static const struct {
        const char *data;
        size_t len;
    } broken[] = {
        { SAMPLE("\x08\x15\x22\x01\x05") },
        { SAMPLE("\x08\x15\x22\x02\0\0") },
        { SAMPLE("\x08\x15\x22\x01\x80") },
        { SAMPLE("\x08\x15\x12\x04\x12\x02\x08\x03\x22\x02\0\0") },
        { SAMPLE("\x08\x15\x12\x04\x12\x02\x08\0\x22\x01\0") },
        { SAMPLE("\x08\x15\x7a\x02\x0a\x7f") },
        { SAMPLE("\x08\x15\x78\x01") },
        { SAMPLE("\x08\x15\x7a\0\x7a\0") },
    };
    struct status st = STATUS_INIT;
    struct tensor t;

    for (size_t i = 0; i < COUNT(broken); i++)
        assert_int_equal(
            tensor_from_proto(&t, broken[i].data, broken[i].len, NULL, &st),
            MST_INVALID_ARGUMENT);
}

/* ---- how deep, how large ---- */

static struct tensor nested(int depth)
{
    struct tensor t = scalar(DT_FLOAT, NULL);

    for (int i = 0; i < depth; i++) {
        struct object *o = boxed_new(&t);

        tensor_unref(&t);
        t = scalar(DT_VARIANT, o);
    }
    return t;
}

static void test_nesting_has_a_bound(void **state)
{
    struct status st = STATUS_INIT;
    struct tensor t, back;
    struct pb_out o;

    t = there_and_back(nested(VARIANT_DEPTH_MAX));
    tensor_unref(&t);
    for (int more = 1; more < 100000; more *= 10) {
        t = nested(VARIANT_DEPTH_MAX + more);
        write(&o, &t);
        tensor_unref(&t);
        assert_int_equal(o.len, 5);
        assert_int_equal(tensor_from_proto(&back, o.data, o.len, NULL, &st),
                         MST_INVALID_ARGUMENT);
        pb_out_done(&o);
    }
}

/* Each list holds the one below it four times. */
static void test_what_no_message_holds_cannot_be_read(void **state)
{
    struct status st = STATUS_INIT;
    struct tensor t, back;
    struct pb_out o;

    assert_int_equal(tensor_new(&t, DT_FLOAT, 1, (int64_t[]){ 1 << 16 }, &st),
                     MST_OK);
    tensor_zero(&t);
    for (int i = 0; i < 40; i++) {
        struct tensor_list *l = new_list((enum dtype)t.dtype);

        for (int k = 0; k < 4; k++)
            tensor_list_push(l, tensor_ref(&t));
        tensor_unref(&t);
        t = scalar(DT_VARIANT, &l->o);
    }
    write(&o, &t);
    tensor_unref(&t);
    assert_int_equal(o.len, 5);
    assert_int_equal(tensor_from_proto(&back, o.data, o.len, NULL, &st),
                     MST_INVALID_ARGUMENT);
    pb_out_done(&o);
}

/* ---- what is not to be had elsewhere ---- */

static void plain_free(struct object *o)
{
    free(o);
}

static void test_objects_without_a_codec_leave_their_name(void **state)
{
    static const struct object_kind kind = { "mine", plain_free };
    struct object *o = calloc(1, sizeof(*o));
    struct status st = STATUS_INIT;
    struct tensor t, back;
    struct pb_out out;

    object_init(o, &kind);
    t = scalar(DT_VARIANT, o);
    write(&out, &t);
    tensor_unref(&t);
    assert_int_equal(out.len, 11);
    assert_memory_equal(out.data, "\x08\x15\x22\x07\x06\x0a\x04mine", 11);
    assert_int_equal(tensor_from_proto(&back, out.data, out.len, NULL, &st),
                     MST_INVALID_ARGUMENT);
    assert_non_null(strstr(st.msg, "type_name: \"mine\""));
    pb_out_done(&out);
}

static void test_handles_have_no_content(void **state)
{
    struct status st = STATUS_INIT;
    struct tensor t;
    struct pb_out o;

    assert_int_equal(tensor_new_scalar(&t, DT_RESOURCE, &st), MST_OK);
    write(&o, &t);
    assert_int_equal(o.len, 4);
    assert_memory_equal(o.data, "\x08\x14\x22\0", 4);
    pb_out_done(&o);
    tensor_unref(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list_is_read_as_tensorflow_writes_it),
        cmocka_unit_test(test_list_in_a_list_is_read_from_fields),
        cmocka_unit_test(test_optionals_are_read_as_tensorflow_writes_them),
        cmocka_unit_test(test_ragged_values_are_read_as_tensorflow_writes_them),
        cmocka_unit_test(test_tensors_and_numbers_come_back),
        cmocka_unit_test(test_what_is_not_given_holds_nothing),
        cmocka_unit_test(test_lists_that_contradict_themselves_are_refused),
        cmocka_unit_test(test_other_variants_are_refused_when_they_are_broken),
        cmocka_unit_test(test_content_must_hold_all_lengths_and_all_bytes),
        cmocka_unit_test(test_nesting_has_a_bound),
        cmocka_unit_test(test_what_no_message_holds_cannot_be_read),
        cmocka_unit_test(test_objects_without_a_codec_leave_their_name),
        cmocka_unit_test(test_handles_have_no_content),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
