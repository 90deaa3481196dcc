/*
 * Regular expressions as RE2 has them, which TensorFlow's string ops use: the
 * syntax of Perl without what needs backtracking, UTF-8, the leftmost match
 * and of those the one that Perl would find first, in time linear in the text.
 *
 * Left out, and refused as unimplemented: single bytes (\C).
 */
#ifndef KERNEL_REGEX_H
#define KERNEL_REGEX_H

#include "base/arena.h"
#include "base/status.h"

struct regex;

/* INVALID_ARGUMENT with RE2's words for what is wrong, or UNIMPLEMENTED. */
enum mst_code regex_new(const char *pattern, size_t len, struct regex **ret,
                        struct status *st) MUST_USE;
void regex_free(struct regex *re); /* accepts NULL */
int regex_groups(const struct regex *re);

/* What runs a pattern; for one thread at a time. */
struct regex_run *regex_run_new(const struct regex *re);
void regex_run_free(struct regex_run *m);

/* The whole text matches. */
bool regex_match_all(struct regex_run *m, const char *text, size_t len);
/* The first match that begins at `from` or later: span[2 * i] and
 * span[2 * i + 1] are where group i begins and ends (0: the match), -1 if it
 * took no part. */
bool regex_find(struct regex_run *m, const char *text, size_t len, size_t from,
                int64_t *span, int groups);

/* ---- between the parser and the rest ---- */

enum regex_kind {
    REGEX_EMPTY,
    REGEX_CLASS,
    REGEX_CAT, /* sub, then next of sub, … */
    REGEX_ALT,
    REGEX_REPEAT,
    REGEX_GROUP,
    REGEX_ASSERT,
};

enum regex_assert {
    ASSERT_TEXT_BEGIN,
    ASSERT_TEXT_END,
    ASSERT_LINE_BEGIN,
    ASSERT_LINE_END,
    ASSERT_WORD,
    ASSERT_NO_WORD,
};

struct regex_range {
    int32_t low, high;
    struct regex_range *next;
};

struct regex_node {
    enum regex_kind kind;
    struct regex_node *sub, *next;
    struct regex_range *ranges; /* CLASS: none of them, if negated */
    bool negated;
    int min, max; /* REPEAT; max -1: no end */
    bool lazy;
    int number; /* GROUP, or enum regex_assert */
    int copies; /* how often the innermost part is written out */
};

#define RUNE_MAX 0x10ffff

/* Decodes a character; its length, with *ret -1 and 1 for a byte that is
 * none. */
int regex_rune(const char *text, size_t len, int32_t *ret);
/* Nodes live in the arena. */
enum mst_code regex_parse(const char *pattern, size_t len, struct arena *arena,
                          struct regex_node **ret, int *ret_groups,
                          struct status *st) MUST_USE;

#endif
