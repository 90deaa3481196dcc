/*
 * The parser of patterns: recursive descent to a tree. Errors have RE2's
 * texts, which quote the part of the pattern that is wrong.
 */
#include <string.h>

#include "kernel/regex.h"

#define DEPTH_MAX  250  /* of parentheses */
#define REPEAT_MAX 1000 /* copies of anything, all loops together */

struct parser {
    const char *begin, *at, *end;
    struct arena *arena;
    struct status *st;
    int groups, depth;
    bool fold, dot_all, lines, lazy; /* flags i, s, m, U */
};

static enum mst_code bad(struct parser *p, const char *what, const char *from,
                         const char *to)
{
    return status_set(p->st, MST_INVALID_ARGUMENT, "%s: %.*s", what,
                      (int)MIN(to - from, 500), from);
}

static enum mst_code refuse(struct parser *p, const char *what)
{
    return status_set(p->st, MST_UNIMPLEMENTED,
                      "%s in regular expressions are not supported", what);
}

static bool looking_at(const struct parser *p, const char *text)
{
    size_t n = strlen(text);

    return (size_t)(p->end - p->at) >= n && !memcmp(p->at, text, n);
}

static struct regex_node *new_node(struct parser *p, enum regex_kind kind)
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

/* The next character of the pattern. */
static enum mst_code next_rune(struct parser *p, int32_t *ret)
{
    int n = regex_rune(p->at, (size_t)(p->end - p->at), ret);

    if (*ret < 0)
        return status_set(p->st, MST_INVALID_ARGUMENT, "invalid UTF-8");
    p->at += n;
    return MST_OK;
}

/* ---- classes ---- */

static void add_range(struct parser *p, struct regex_node *n, int32_t low,
                      int32_t high)
{
    struct regex_range *r = ARENA_NEW(p->arena, struct regex_range);

    *r = (struct regex_range){ low, high, n->ranges };
    n->ranges = r;
}

/* With the other case, if that is asked for. */
static enum mst_code add_folded(struct parser *p, struct regex_node *n,
                                int32_t low, int32_t high)
{
    add_range(p, n, low, high);
    if (!p->fold)
        return MST_OK;
    if (high >= 0x80)
        return refuse(p, "Letters beyond ASCII of either case");
    for (int32_t c = low; c <= high; c++) {
        int32_t lower = c | 0x20;

        if (lower < 'a' || lower > 'z')
            continue;
        add_range(p, n, c ^ 0x20, c ^ 0x20);
        if (lower == 'k') /* the sign of Kelvin, and the long s */
            add_range(p, n, 0x212a, 0x212a);
        if (lower == 's')
            add_range(p, n, 0x17f, 0x17f);
    }
    return MST_OK;
}

/* Named sets as pairs of characters; upper case letters are the opposite. */
struct set {
    const char *name, *pairs;
};

static const struct set perl_sets[] = {
    { "d", "09" },
    { "s", "\t\n\f\r  " },
    { "w", "09AZ__az" },
};

static const struct set posix_sets[] = {
    { "alnum", "09AZaz" },
    { "alpha", "AZaz" },
    { "ascii", "\001\177" },
    { "blank", "\t\t  " },
    { "cntrl", "\001\037\177\177" },
    { "digit", "09" },
    { "graph", "!~" },
    { "lower", "az" },
    { "print", " ~" },
    { "punct", "!/:@[`{~" },
    { "space", "\t\r  " },
    { "upper", "AZ" },
    { "word", "09AZaz__" },
    { "xdigit", "09AFaf" },
};

static const struct set *find_set(const struct set *sets, size_t count,
                                  const char *name, size_t len)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(sets[i].name) == len && !memcmp(sets[i].name, name, len))
            return &sets[i];
    return NULL;
}

/* Adds a set, or all but it. Sets are in the order of their characters. */
static enum mst_code add_set(struct parser *p, struct regex_node *n,
                             const struct set *set, bool negated)
{
    enum mst_code rc = MST_OK;
    int32_t next = 0;
    /* These have NUL, which their texts cannot. */
    bool nul = !strcmp(set->name, "ascii") || !strcmp(set->name, "cntrl");

    if (nul && negated)
        next = 1;
    if (nul && !negated)
        add_range(p, n, 0, 0);
    for (const char *s = set->pairs; *s && !rc; s += 2) {
        if (!negated)
            rc = add_folded(p, n, s[0], s[1]);
        else if (next < s[0])
            add_range(p, n, next, s[0] - 1);
        next = s[1] + 1;
    }
    if (negated)
        add_range(p, n, next, RUNE_MAX);
    return rc;
}

/* "\d" and its like at the parser's place; false if it is none. */
static bool take_perl_set(struct parser *p, const struct set **ret,
                          bool *ret_negated)
{
    char name;

    if (p->end - p->at < 2 || p->at[0] != '\\')
        return false;
    name = (char)(p->at[1] | 0x20);
    *ret = find_set(perl_sets, COUNT(perl_sets), &name, 1);
    *ret_negated = !(p->at[1] & 0x20);
    if (!*ret)
        return false;
    p->at += 2;
    return true;
}

/* ---- escapes ---- */

static int digit(char c, int base)
{
    int v = c >= '0' && c <= '9'   ? c - '0'
            : c >= 'a' && c <= 'f' ? c - 'a' + 10
            : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                   : 99;

    return v < base ? v : -1;
}

/* What follows "\x". */
static enum mst_code parse_hex(struct parser *p, const char *start,
                               int32_t *ret)
{
    int32_t v = 0;

    if (p->at < p->end && *p->at == '{') {
        const char *digits = ++p->at;

        for (; p->at < p->end && digit(*p->at, 16) >= 0; p->at++) {
            v = v * 16 + digit(*p->at, 16);
            if (v > RUNE_MAX)
                return bad(p, "invalid escape sequence", start, p->at + 1);
        }
        if (p->at == p->end || *p->at != '}' || p->at == digits)
            return bad(p, "invalid escape sequence", start,
                       MIN(p->at + 1, p->end));
        p->at++;
    } else {
        for (int i = 0; i < 2; i++, p->at++) {
            if (p->at == p->end || digit(*p->at, 16) < 0)
                return bad(p, "invalid escape sequence", start,
                           MIN(p->at + 1, p->end));
            v = v * 16 + digit(*p->at, 16);
        }
    }
    *ret = v;
    return MST_OK;
}

static enum mst_code parse_escape(struct parser *p, int32_t *ret)
{
    static const char names[] = "nrtafv", values[] = "\n\r\t\a\f\v";
    const char *start = p->at++, *at;
    enum mst_code rc;
    int32_t c;

    if (p->at == p->end)
        return status_set(p->st, MST_INVALID_ARGUMENT, "trailing \\");
    rc = next_rune(p, &c);
    if (rc)
        return rc;
    if (c == 'x')
        return parse_hex(p, start, ret);
    at = c && c < 0x80 ? strchr(names, c) : NULL;
    if (at) {
        *ret = values[at - names];
        return MST_OK;
    }
    /* One digit alone would be a reference back. */
    if (c == '0' ||
        (c >= '1' && c <= '7' && p->at < p->end && digit(*p->at, 8) >= 0)) {
        *ret = c - '0';
        for (int i = 0; i < 2 && p->at < p->end && digit(*p->at, 8) >= 0; i++)
            *ret = *ret * 8 + digit(*p->at++, 8);
        return MST_OK;
    }
    if (c >= 0x80 || (c >= '0' && c <= '9') ||
        ((c | 0x20) >= 'a' && (c | 0x20) <= 'z'))
        return bad(p, "invalid escape sequence", start, p->at);
    *ret = c;
    return MST_OK;
}

/* ---- "[…]" ---- */

static enum mst_code class_char(struct parser *p, const char *open,
                                int32_t *ret)
{
    if (p->at == p->end)
        return bad(p, "missing ]", open, p->end);
    return *p->at == '\\' ? parse_escape(p, ret) : next_rune(p, ret);
}

static enum mst_code class_range(struct parser *p, const char *open,
                                 struct regex_node *n)
{
    const char *start = p->at;
    int32_t low, high;
    enum mst_code rc = class_char(p, open, &low);

    high = low;
    if (!rc && p->end - p->at >= 2 && p->at[0] == '-' && p->at[1] != ']') {
        p->at++;
        rc = class_char(p, open, &high);
        if (!rc && high < low)
            rc = bad(p, "invalid character class range", start, p->at);
    }
    return rc ? rc : add_folded(p, n, low, high);
}

/* "[:alpha:]"; *ret_taken says whether there was such a thing. */
static enum mst_code class_posix(struct parser *p, struct regex_node *n,
                                 bool *ret_taken)
{
    const char *stop = memmem(p->at + 2, (size_t)(p->end - p->at - 2), ":]", 2);
    const char *name = p->at + 2;
    const struct set *set;
    bool negated;
    enum mst_code rc;

    *ret_taken = stop != NULL;
    if (!stop)
        return MST_OK;
    negated = *name == '^';
    name += negated;
    set = find_set(posix_sets, COUNT(posix_sets), name,
                   (size_t)(MAX(stop, name) - name));
    if (!set)
        return bad(p, "invalid character class range", p->at, stop + 2);
    rc = add_set(p, n, set, negated);
    p->at = stop + 2;
    return rc;
}

static enum mst_code parse_class(struct parser *p, struct regex_node **ret)
{
    const char *open = p->at++;
    struct regex_node *n = new_node(p, REGEX_CLASS);
    const struct set *set;
    bool first = true, negated, taken;
    enum mst_code rc = MST_OK;

    if (p->at < p->end && *p->at == '^') {
        n->negated = true;
        p->at++;
    }
    while (!rc && (p->at == p->end || *p->at != ']' || first)) {
        if (p->at == p->end)
            return bad(p, "missing ]", open, p->end);
        first = false;
        taken = false;
        if (looking_at(p, "[:"))
            rc = class_posix(p, n, &taken);
        if (rc || taken)
            continue;
        if (looking_at(p, "\\p") || looking_at(p, "\\P"))
            return refuse(p, "Classes of Unicode");
        if (take_perl_set(p, &set, &negated))
            rc = add_set(p, n, set, negated);
        else
            rc = class_range(p, open, n);
    }
    p->at++;
    *ret = n;
    return rc;
}

/* ---- atoms ---- */

static enum mst_code parse_alt(struct parser *p, struct regex_node **ret);

static struct regex_node *assertion(struct parser *p, enum regex_assert which)
{
    struct regex_node *n = new_node(p, REGEX_ASSERT);

    n->number = which;
    return n;
}

static enum mst_code literal(struct parser *p, int32_t c,
                             struct regex_node **ret)
{
    *ret = new_node(p, REGEX_CLASS);
    return add_folded(p, *ret, c, c);
}

/* "\Q…\E": what lies between, as it is. */
static enum mst_code parse_quoted(struct parser *p, struct regex_node **ret)
{
    struct regex_node *cat = new_node(p, REGEX_CAT), **last = &cat->sub;
    enum mst_code rc = MST_OK;
    int32_t c;

    p->at += 2;
    while (!rc && p->at < p->end && !looking_at(p, "\\E")) {
        rc = next_rune(p, &c);
        if (!rc)
            rc = literal(p, c, last);
        if (!rc)
            last = &(*last)->next;
    }
    if (p->at < p->end)
        p->at += 2;
    *ret = cat->sub ? cat : NULL;
    return rc;
}

static enum mst_code parse_backslash(struct parser *p, struct regex_node **ret)
{
    static const char names[] = "AzbB";
    static const enum regex_assert which[] = { ASSERT_TEXT_BEGIN,
                                               ASSERT_TEXT_END, ASSERT_WORD,
                                               ASSERT_NO_WORD };
    char next = p->end - p->at > 1 ? p->at[1] : '\0';
    const char *at = next ? strchr(names, next) : NULL;
    const struct set *set;
    bool negated;
    enum mst_code rc;
    int32_t c;

    if (at) {
        p->at += 2;
        *ret = assertion(p, which[at - names]);
        return MST_OK;
    }
    if (next == 'Q')
        return parse_quoted(p, ret);
    if (next == 'p' || next == 'P')
        return refuse(p, "Classes of Unicode");
    if (next == 'C')
        return refuse(p, "Single bytes");
    if (take_perl_set(p, &set, &negated)) {
        *ret = new_node(p, REGEX_CLASS);
        return add_set(p, *ret, set, negated);
    }
    rc = parse_escape(p, &c);
    return rc ? rc : literal(p, c, ret);
}

/* What follows "(?" up to ")" or ":" : letters that set flags, after "-" those
 * that clear them. */
static enum mst_code parse_flags(struct parser *p, const char *open)
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
    return bad(p, "invalid perl operator", open, p->at);
}

static enum mst_code parse_name(struct parser *p, const char *open)
{
    const char *name = p->at + 4, *stop;

    stop = memchr(name, '>', (size_t)(p->end - name));
    if (!stop)
        return bad(p, "invalid named capture group", open, p->end);
    for (const char *c = name; c < stop || stop == name; c++)
        if (stop == name || !(digit(*c, 10) >= 0 || *c == '_' ||
                              ((*c | 0x20) >= 'a' && (*c | 0x20) <= 'z')))
            return bad(p, "invalid named capture group", open, stop + 1);
    p->at = stop + 1;
    return MST_OK;
}

/* A group, or flags for the rest of the one around; *ret is NULL for the
 * latter. */
static enum mst_code parse_group(struct parser *p, struct regex_node **ret)
{
    struct parser before = *p;
    const char *open = p->at;
    struct regex_node *n = NULL;
    enum mst_code rc = MST_OK;

    *ret = NULL;
    if (looking_at(p, "(?P<")) {
        rc = parse_name(p, open);
        n = new_node(p, REGEX_GROUP);
    } else if (looking_at(p, "(?")) {
        p->at += 2;
        rc = parse_flags(p, open);
        if (!rc && *p->at++ == ')')
            return MST_OK;
    } else {
        p->at++;
        n = new_node(p, REGEX_GROUP);
    }
    if (rc)
        return rc;
    if (++p->depth > DEPTH_MAX)
        return bad(p, "bad repetition operator", p->begin, p->end);
    if (n)
        n->number = ++p->groups;
    rc = parse_alt(p, n ? &n->sub : ret);
    if (rc)
        return rc;
    if (p->at == p->end)
        return bad(p, "missing )", p->begin, p->end);
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

static enum mst_code parse_atom(struct parser *p, struct regex_node **ret)
{
    enum mst_code rc;
    int32_t c;

    switch (*p->at) {
    case '(':
        return parse_group(p, ret);
    case '[':
        return parse_class(p, ret);
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
        *ret = new_node(p, REGEX_CLASS);
        (*ret)->negated = true;
        if (!p->dot_all)
            add_range(p, *ret, '\n', '\n');
        return MST_OK;
    default:
        rc = next_rune(p, &c);
        return rc ? rc : literal(p, c, ret);
    }
}

/* ---- repetition ---- */

static bool read_count(const char **at, const char *end, int *ret)
{
    const char *start = *at;

    for (*ret = 0; *at < end && digit(**at, 10) >= 0; (*at)++)
        *ret = MIN(*ret * 10 + digit(**at, 10), 100000);
    /* A number does not begin with 0. */
    return *at > start && !(*start == '0' && *at - start > 1);
}

/* "*", "+", "?" or "{2,3}" at the parser's place; false if none is there. */
static bool take_repeat(struct parser *p, int *ret_min, int *ret_max)
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
static enum mst_code parse_repeat(struct parser *p, struct regex_node **sub)
{
    const char *first = NULL, *start = p->at;
    int min, max;

    for (; take_repeat(p, &min, &max); start = p->at) {
        bool lazy = p->at < p->end && *p->at == '?';
        struct regex_node *n;

        p->at += lazy;
        if (first)
            return bad(p, "bad repetition operator", first, p->at);
        if (*start == '{' &&
            ((max >= 0 && max < min) || min > REPEAT_MAX || max > REPEAT_MAX))
            return bad(p, "invalid repetition size", start, p->at);
        if (!*sub)
            return bad(p, "no argument for repetition operator", start, p->at);
        n = new_node(p, REGEX_REPEAT);
        n->sub = *sub;
        n->min = min;
        n->max = max;
        n->lazy = lazy != p->lazy;
        n->copies = (*sub)->copies * MAX(MAX(min, max), 1);
        if (n->copies > REPEAT_MAX)
            return bad(p, "invalid repetition size", start, p->at);
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

static enum mst_code parse_cat(struct parser *p, struct regex_node **ret)
{
    struct regex_node *cat = new_node(p, REGEX_CAT), *none = NULL;
    /* The last node's place, and that of what an operator would mean. */
    struct regex_node **last = NULL, **before = &none;
    enum mst_code rc = MST_OK;

    while (!rc && p->at < p->end && *p->at != '|' && *p->at != ')') {
        bool quoted = looking_at(p, "\\Q");
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

static enum mst_code parse_alt(struct parser *p, struct regex_node **ret)
{
    struct regex_node *alt = new_node(p, REGEX_ALT), **last = &alt->sub;
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
    struct parser p = { .begin = pattern,
                        .at = pattern,
                        .end = pattern + len,
                        .arena = arena,
                        .st = st };
    enum mst_code rc = parse_alt(&p, ret);

    if (!rc && p.at < p.end)
        rc = bad(&p, "unexpected )", pattern, p.end);
    *ret_groups = p.groups;
    return rc;
}
