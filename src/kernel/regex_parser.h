/*
 * What the files of the parser of patterns share: regex_parse.c has the
 * grammar, regex_class.c sets of characters and escapes, regex_unicode.c what
 * takes Unicode's tables.
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
bool regex_looking_at(const struct regex_parser *p, const char *text);
struct regex_node *regex_node(struct regex_parser *p, enum regex_kind kind);
/* The next character of the pattern. */
enum mst_code regex_next(struct regex_parser *p, int32_t *ret) MUST_USE;

/* ---- regex_class.c ---- */

void regex_add_range(struct regex_parser *p, struct regex_node *n, int32_t low,
                     int32_t high);
/* With the other case, if that is asked for. */
void regex_add_folded(struct regex_parser *p, struct regex_node *n, int32_t low,
                      int32_t high);
/* "\d" and its like at the parser's place, added to n; *ret_taken says whether
 * there was one. */
enum mst_code regex_take_set(struct regex_parser *p, struct regex_node *n,
                             bool *ret_taken) MUST_USE;
/* The character that the escape at the parser's place means. */
enum mst_code regex_escape(struct regex_parser *p, int32_t *ret) MUST_USE;
/* "[...]" */
enum mst_code regex_class(struct regex_parser *p,
                          struct regex_node **ret) MUST_USE;

/* ---- regex_unicode.c ---- */

/* "\pL" or "\P{Greek}" at the parser's place, added to n. */
enum mst_code regex_take_unicode(struct regex_parser *p,
                                 struct regex_node *n) MUST_USE;
/* A range, with the other cases of its letters. */
void regex_add_cases(struct regex_parser *p, struct regex_node *n, int32_t low,
                     int32_t high);

#endif
