/*
 * Text in any encoding to code points and back.
 *
 * Reading is ICU's: TensorFlow reads with it, any encoding that ICU knows may
 * be asked for, and how much of a malformed text one replacement stands for is
 * its matter. Writing is UTF-8, UTF-16 and UTF-32, both big-endian, by hand.
 */
#ifndef KERNEL_UNICODE_H
#define KERNEL_UNICODE_H

#include "kernel/text.h"
#include "op/op.h"

enum unicode_encoding { UNICODE_UTF8, UNICODE_UTF16, UNICODE_UTF32 };

/* What to do with malformed text. */
struct unicode_policy {
    int32_t replacement;
    bool strict, ignore;
    bool controls; /* C0 controls count as malformed */
};

/* From the attributes that all these ops have. */
enum mst_code unicode_policy_init(struct unicode_policy *p,
                                  const struct op_node *n,
                                  struct status *st) MUST_USE;
enum unicode_encoding unicode_encoding_of(struct attr_text name);

struct unicode_reader {
    void *converter;
};

/* False when there is no such encoding. */
bool unicode_reader_open(struct unicode_reader *r, const char *encoding);
void unicode_reader_close(struct unicode_reader *r);
/* Calls fn for every code point of s, with how many bytes it took and whether
 * they were malformed (then it is U+FFFD). */
void unicode_read(struct unicode_reader *r, const struct str *s,
                  void (*fn)(void *arg, int32_t ch, int64_t bytes, bool bad),
                  void *arg);

/* Code points on their way out, as UTF-16: two that are surrogates become one
 * character, as in TensorFlow. */
struct unicode_writer {
    uint16_t *units;
    size_t count, room;
};

void unicode_add(struct unicode_writer *w, int32_t ch); /* in 0..0x10ffff */
/* The text so far; w is empty then, with its memory kept. */
void unicode_give(struct unicode_writer *w, enum unicode_encoding e,
                  struct str *ret);
void unicode_writer_done(struct unicode_writer *w);

/* s in upper or lower case, by Unicode's rules without a language. */
enum mst_code unicode_change_case(struct str *s, bool upper,
                                  struct status *st) MUST_USE;

#endif
