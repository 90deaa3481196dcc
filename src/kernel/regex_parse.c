/*
 * The parser of patterns: recursive descent to a tree. Errors have RE2's
 * texts, which quote the part of the pattern that is wrong.
 */
#include <string.h>

#include "kernel/regex_parser.h"

#define DEPTH_MAX  250  /* of parentheses */
#define REPEAT_MAX 1000 /* copies of anything, all loops together */

enum mst_code regex_bad(struct regex_parser *p, const char *what,
                        const char *from, const char *to)
{
    return status_set(p->st, MST_INVALID_ARGUMENT, "%s: %.*s", what,
                      (int)MIN(to - from, 500), from);
}

bool regex_looking_at(const struct regex_parser *p, const char *text)
{
    size_t n = strlen(text);

    return (size_t)(p->end - p->at) >= n && !memcmp(p->at, text, n);
}

struct regex_node *regex_node(struct regex_parser *p, enum regex_kind kind)
{
    struct regex_node *n = ARENA_NEW(p->arena, struct regex_node);

    n->kind = kind;
    n->copies = 1;
    return n;
}

int regex_rune(const char *text, size_t len, int32_t *ret)
{
    const unsigned char *s = (const unsigned char *)text;
    int n = s[0] < 0x80                    ? 1
            : s[0] >= 0xc2 && s[0] <= 0xdf ? 2
            : (s[0] & 0xf0) == 0xe0        ? 3
            : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4
                                           : 0;
    int32_t rune = n == 1 ? s[0] : n ? s[0] & (0x7f >> n) : 0;

    *ret = -1;
    if (!n || (size_t)n > len)
        return 1;
    for (int i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 1;
        rune = rune << 6 | (s[i] & 0x3f);
    }
    if ((n == 3 && rune < 0x800) || (n == 4 && rune < 0x10000) ||
        rune > RUNE_MAX || (rune >= 0xd800 && rune < 0xe000))
        return 1;
    *ret = rune;
    return n;
}

enum mst_code regex_next(struct regex_parser *p, int32_t *ret)
{
    int n = regex_rune(p->at, (size_t)(p->end - p->at), ret);

    if (*ret < 0)
        return status_set(p->st, MST_INVALID_ARGUMENT, "invalid UTF-8");
    p->at += n;
    return MST_OK;
}

/* ---- atoms ---- */

static enum mst_code parse_alt(struct regex_parser *p, struct regex_node **ret);

static struct regex_node *assertion(struct regex_parser *p,
                                    enum regex_assert which)
{
    struct regex_node *n = regex_node(p, REGEX_ASSERT);

    n->number = which;
    return n;
}

static struct regex_node *literal(struct regex_parser *p, int32_t c)
{
    struct regex_node *n = regex_node(p, REGEX_CLASS);

    regex_add_folded(p, n, c, c);
    return n;
}

/* "\Q…\E": what lies between, as it is. */
static enum mst_code parse_quoted(struct regex_parser *p,
                                  struct regex_node **ret)
{
    struct regex_node *cat = regex_node(p, REGEX_CAT), **last = &cat->sub;
    enum mst_code rc = MST_OK;
    int32_t c;

    p->at += 2;
    while (!rc && p->at < p->end && !regex_looking_at(p, "\\E")) {
        rc = regex_next(p, &c);
        if (rc)
            break;
        *last = literal(p, c);
        last = &(*last)->next;
    }
    if (p->at < p->end)
        p->at += 2;
    *ret = cat->sub ? cat : NULL;
    return rc;
}

static enum mst_code parse_backslash(struct regex_parser *p,
                                     struct regex_node **ret)
{
    static const char names[] = "AzbB";
    static const enum regex_assert which[] = { ASSERT_TEXT_BEGIN,
                                               ASSERT_TEXT_END, ASSERT_WORD,
                                               ASSERT_NO_WORD };
    char next = p->end - p->at > 1 ? p->at[1] : '\0';
    const char *at = next ? strchr(names, next) : NULL;
    struct regex_node *n;
    bool taken;
    enum mst_code rc;
    int32_t c;

    if (at) {
        p->at += 2;
        *ret = assertion(p, which[at - names]);
        return MST_OK;
    }
    if (next == 'Q')
        return parse_quoted(p, ret);
    if (next == 'C')
        return status_set(p->st, MST_UNIMPLEMENTED,
                          "Single bytes in regular expressions are not "
                          "supported");
    n = regex_node(p, REGEX_CLASS);
    rc = regex_take_set(p, n, &taken);
    if (rc || taken) {
        *ret = n;
        return rc;
    }
    rc = regex_escape(p, &c);
    if (!rc)
        *ret = literal(p, c);
    return rc;
}

/* What follows "(?" up to ")" or ":" : letters that set flags, after "-" those
 * that clear them. */
static enum mst_code parse_flags(struct regex_parser *p, const char *open)
{
    bool on = true, some = true;
    int32_t rune;

    for (; p->at < p->end; p->at++) {
        bool *flag = *p->at == 'i'   ? &p->fold
                     : *p->at == 's' ? &p->dot_all
                     : *p->at == 'm' ? &p->lines
                     : *p->at == 'U' ? &p->lazy
                                     : NULL;

        if (flag) {
            *flag = on;
            some = true;
        } else if (*p->at == '-' && on) {
            on = some = false;
        } else if ((*p->at == ':' || *p->at == ')') && some) {
            return MST_OK;
        } else {
            break;
        }
    }
    if (p->at < p->end)
        p->at += regex_rune(p->at, (size_t)(p->end - p->at), &rune);
    return regex_bad(p, "invalid perl operator", open, p->at);
}

static enum mst_code parse_name(struct regex_parser *p, const char *open)
{
    const char *name = p->at + 4, *stop;

    stop = memchr(name, '>', (size_t)(p->end - name));
    if (!stop)
        return regex_bad(p, "invalid named capture group", open, p->end);
    for (const char *c = name; c < stop || stop == name; c++)
        if (stop == name || !((*c >= '0' && *c <= '9') || *c == '_' ||
                              ((*c | 0x20) >= 'a' && (*c | 0x20) <= 'z')))
            return regex_bad(p, "invalid named capture group", open, stop + 1);
    p->at = stop + 1;
    return MST_OK;
}

/* A group, or flags for the rest of the one around; *ret is NULL for the
 * latter. */
static enum mst_code parse_group(struct regex_parser *p,
                                 struct regex_node **ret)
{
    struct regex_parser before = *p;
    const char *open = p->at;
    struct regex_node *n = NULL;
    enum mst_code rc = MST_OK;

    *ret = NULL;
    if (regex_looking_at(p, "(?P<")) {
        rc = parse_name(p, open);
        n = regex_node(p, REGEX_GROUP);
    } else if (regex_looking_at(p, "(?")) {
        p->at += 2;
        rc = parse_flags(p, open);
        if (!rc && *p->at++ == ')')
            return MST_OK;
    } else {
        p->at++;
        n = regex_node(p, REGEX_GROUP);
    }
    if (rc)
        return rc;
    if (++p->depth > DEPTH_MAX)
        return regex_bad(p, "bad repetition operator", p->begin, p->end);
    if (n)
        n->number = ++p->groups;
    rc = parse_alt(p, n ? &n->sub : ret);
    if (rc)
        return rc;
    if (p->at == p->end)
        return regex_bad(p, "missing )", p->begin, p->end);
    p->at++;
    p->depth--;
    p->fold = before.fold;
    p->dot_all = before.dot_all;
    p->lines = before.lines;
    p->lazy = before.lazy;
    if (n) {
        n->copies = n->sub->copies;
        *ret = n;
    }
    return MST_OK;
}

static enum mst_code parse_atom(struct regex_parser *p, struct regex_node **ret)
{
    enum mst_code rc;
    int32_t c;

    switch (*p->at) {
    case '(':
        return parse_group(p, ret);
    case '[':
        return regex_class(p, ret);
    case '\\':
        return parse_backslash(p, ret);
    case '^':
        p->at++;
        *ret = assertion(p, p->lines ? ASSERT_LINE_BEGIN : ASSERT_TEXT_BEGIN);
        return MST_OK;
    case '$':
        p->at++;
        *ret = assertion(p, p->lines ? ASSERT_LINE_END : ASSERT_TEXT_END);
        return MST_OK;
    case '.':
        p->at++;
        *ret = regex_node(p, REGEX_CLASS);
        (*ret)->negated = true;
        if (!p->dot_all)
            regex_add_range(p, *ret, '\n', '\n');
        return MST_OK;
    default:
        rc = regex_next(p, &c);
        if (!rc)
            *ret = literal(p, c);
        return rc;
    }
}

/* ---- repetition ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool read_count(const char **at, const char *end, int *ret)
{
    const char *start = *at;

    for (*ret = 0; *at < end && is_digit(**at); (*at)++)
        *ret = MIN(*ret * 10 + (**at - '0'), 100000);
    /* A number does not begin with 0. */
    return *at > start && !(*start == '0' && *at - start > 1);
}

/* "*", "+", "?" or "{2,3}" at the parser's place; false if none is there. */
static bool take_repeat(struct regex_parser *p, int *ret_min, int *ret_max)
{
    const char *at = p->at;

    *ret_min = *ret_max = 0;
    if (at == p->end)
        return false;
    switch (*at++) {
    case '*':
        *ret_max = -1;
        break;
    case '+':
        *ret_min = 1;
        *ret_max = -1;
        break;
    case '?':
        *ret_max = 1;
        break;
    case '{':
        if (!read_count(&at, p->end, ret_min))
            return false;
        *ret_max = *ret_min;
        if (at < p->end && *at == ',') {
            at++;
            *ret_max = -1;
            if (at < p->end && *at != '}' && !read_count(&at, p->end, ret_max))
                return false;
        }
        if (at == p->end || *at++ != '}')
            return false;
        break;
    default:
        return false;
    }
    p->at = at;
    return true;
}

/* The operators after an atom; sub is NULL where there is no atom. */
static enum mst_code parse_repeat(struct regex_parser *p,
                                  struct regex_node **sub)
{
    const char *first = NULL, *start = p->at;
    int min, max;

    for (; take_repeat(p, &min, &max); start = p->at) {
        bool lazy = p->at < p->end && *p->at == '?';
        struct regex_node *n;

        p->at += lazy;
        if (first)
            return regex_bad(p, "bad repetition operator", first, p->at);
        if (*start == '{' &&
            ((max >= 0 && max < min) || min > REPEAT_MAX || max > REPEAT_MAX))
            return regex_bad(p, "invalid repetition size", start, p->at);
        if (!*sub)
            return regex_bad(p, "no argument for repetition operator", start,
                             p->at);
        n = regex_node(p, REGEX_REPEAT);
        n->sub = *sub;
        n->min = min;
        n->max = max;
        n->lazy = lazy != p->lazy;
        n->copies = (*sub)->copies * MAX(MAX(min, max), 1);
        if (n->copies > REPEAT_MAX)
            return regex_bad(p, "invalid repetition size", start, p->at);
        *sub = n;
        first = start;
    }
    return MST_OK;
}

/* The last node of a quoted text, which is what an operator after it means. */
static struct regex_node **last_quoted(struct regex_node **n)
{
    n = &(*n)->sub;
    while ((*n)->next)
        n = &(*n)->next;
    return n;
}

static enum mst_code parse_cat(struct regex_parser *p, struct regex_node **ret)
{
    struct regex_node *cat = regex_node(p, REGEX_CAT), *none = NULL;
    /* The last node's place, and that of what an operator would mean. */
    struct regex_node **last = NULL, **before = &none;
    enum mst_code rc = MST_OK;

    while (!rc && p->at < p->end && *p->at != '|' && *p->at != ')') {
        bool quoted = regex_looking_at(p, "\\Q");
        struct regex_node *n = NULL;

        /* With nothing before it an operator is wrong; after flags it means
         * what stands before them. */
        rc = parse_repeat(p, before);
        if (rc || p->at == p->end || *p->at == '|' || *p->at == ')')
            continue;
        rc = parse_atom(p, &n);
        if (rc || !n)
            continue;
        last = last ? &(*last)->next : &cat->sub;
        *last = n;
        before = quoted ? last_quoted(last) : last;
        rc = parse_repeat(p, before);
        cat->copies = MAX(cat->copies, (*before)->copies);
    }
    *ret = cat;
    return rc;
}

static enum mst_code parse_alt(struct regex_parser *p, struct regex_node **ret)
{
    struct regex_node *alt = regex_node(p, REGEX_ALT), **last = &alt->sub;
    enum mst_code rc;

    for (;; p->at++) {
        rc = parse_cat(p, last);
        if (rc)
            return rc;
        alt->copies = MAX(alt->copies, (*last)->copies);
        last = &(*last)->next;
        if (p->at == p->end || *p->at != '|')
            break;
    }
    *ret = alt->sub->next ? alt : alt->sub;
    return MST_OK;
}

enum mst_code regex_parse(const char *pattern, size_t len, struct arena *arena,
                          struct regex_node **ret, int *ret_groups,
                          struct status *st)
{
    struct regex_parser p = { .begin = pattern,
                              .at = pattern,
                              .end = pattern + len,
                              .arena = arena,
                              .st = st };
    enum mst_code rc = parse_alt(&p, ret);

    if (!rc && p.at < p.end)
        rc = regex_bad(&p, "unexpected )", pattern, p.end);
    *ret_groups = p.groups;
    return rc;
}
