/*
 * tf.train.Example and SequenceExample as they lie in a string: which of the
 * wanted features are there, and their values.
 *
 *   Example { 1 features }, SequenceExample { 1 context, 2 feature_lists }
 *   Features and FeatureLists { 1 map entry { 1 key, 2 value } }
 *   FeatureList { 1 feature }
 *   Feature { 1 bytes_list | 2 float_list | 3 int64_list }, each { 1 value }
 *
 * Nothing is copied before its place in an output is known: a feature is a
 * pair of pointers into the string. Messages come from files and peers; what
 * is cut or malformed is said, never believed.
 */
#ifndef KERNEL_EXAMPLE_H
#define KERNEL_EXAMPLE_H

#include "base/map.h"
#include "tensor/tensor.h"
#include "wire/pb.h"

/* A value of a map, as it lies there. */
struct example_bytes {
    const uint8_t *data;
    size_t len;
    bool present;
};

struct example_feature {
    enum dtype dtype; /* DT_INVALID: no list at all */
    const uint8_t *data;
    size_t len; /* of the list message */
};

/* Names to numbers. */
struct example_keys {
    struct map map;
};

void example_keys_init(struct example_keys *k);
void example_keys_done(struct example_keys *k);
/* False when the name is there already. */
bool example_keys_add(struct example_keys *k, const struct str *key,
                      size_t number);

/* A Features or FeatureLists message: row[n] becomes the value of the key with
 * number n, the last one if there are several. False when malformed. */
bool example_find(struct pb_in features, const struct example_keys *k,
                  struct example_bytes *row);

/* False when it is no Feature. */
bool example_open(struct example_bytes b, struct example_feature *ret);
/* How many values it has; negative when the list is malformed. */
int64_t example_count(const struct example_feature *f);
/* Reads them all into t from element `at` on: there is room, and t has the
 * feature's type. */
void example_read(const struct example_feature *f, const struct tensor *t,
                  int64_t at);
/* The next feature of a FeatureList; false at the end (in->bad: malformed). */
bool example_next(struct pb_in *in, struct example_bytes *ret);

/* Element `at` of a vector of splits, int32 or int64. */
void example_set_split(const struct tensor *t, int64_t at, int64_t value);

#endif
