/*
 * String tensors in a data file: the lengths of all elements as varints, a
 * checksum of the lengths, then all bytes. The tensor's own checksum is over
 * the lengths as numbers of 32 bits (64 where they are larger), that first
 * checksum, and the bytes.
 */
#ifndef STORE_BUNDLE_STRINGS_H
#define STORE_BUNDLE_STRINGS_H

#include "store/cursor.h"
#include "store/file.h"
#include "tensor/tensor.h"

enum mst_code bundle_strings_write(struct file_out *out, const struct tensor *t,
                                   uint32_t *ret_crc,
                                   struct status *st) MUST_USE;
/* Fills the elements of t. unchecked: for fuzzers. */
enum mst_code bundle_strings_parse(struct tensor *t, struct pb_in data,
                                   bool unchecked, uint32_t *ret_crc,
                                   struct status *st) MUST_USE;

#endif
