/*
 * What the two files of the parser of patterns share: regex_parse.c has the
 * grammar, regex_class.c sets of characters and escapes.
 */
#ifndef KERNEL_REGEX_PARSER_H
#define KERNEL_REGEX_PARSER_H

#include "kernel/regex.h"

struct regex_parser {
    const char *begin, *at, *end;
    struct arena *arena;
    struct status *st;
    int groups, depth;
    bool fold, dot_all, lines, lazy; /* flags i, s, m, U */
};

/* An error that quotes [from, to) of the pattern. */
enum mst_code regex_bad(struct regex_parser *p, const char *what,
                        const char *from, const char *to);
enum mst_code regex_refuse(struct regex_parser *p, const char *what);
bool regex_looking_at(const struct regex_parser *p, const char *text);
struct regex_node *regex_node(struct regex_parser *p, enum regex_kind kind);
/* The next character of the pattern. */
enum mst_code regex_next(struct regex_parser *p, int32_t *ret) MUST_USE;

/* ---- regex_class.c ---- */

void regex_add_range(struct regex_parser *p, struct regex_node *n, int32_t low,
                     int32_t high);
/* With the other case, if that is asked for. */
enum mst_code regex_add_folded(struct regex_parser *p, struct regex_node *n,
                               int32_t low, int32_t high) MUST_USE;
/* "\d" and its like at the parser's place, added to n; *ret_taken says whether
 * there was one. */
enum mst_code regex_take_set(struct regex_parser *p, struct regex_node *n,
                             bool *ret_taken) MUST_USE;
/* The character that the escape at the parser's place means. */
enum mst_code regex_escape(struct regex_parser *p, int32_t *ret) MUST_USE;
/* "[...]" */
enum mst_code regex_class(struct regex_parser *p,
                          struct regex_node **ret) MUST_USE;

#endif
