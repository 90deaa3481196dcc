/*
 * Sets of characters in patterns: named ones, "[a-z]", and the escapes that
 * stand for a character. Ignoring case is a matter of adding the other one.
 */
#include <string.h>

#include "kernel/regex_parser.h"

void regex_add_range(struct regex_parser *p, struct regex_node *n, int32_t low,
                     int32_t high)
{
    struct regex_range *r = ARENA_NEW(p->arena, struct regex_range);

    *r = (struct regex_range){ low, high, n->ranges };
    n->ranges = r;
}

void regex_add_folded(struct regex_parser *p, struct regex_node *n, int32_t low,
                      int32_t high)
{
    if (p->fold && high >= 0x80) {
        regex_add_cases(p, n, low, high);
        return;
    }
    regex_add_range(p, n, low, high);
    if (!p->fold)
        return;
    for (int32_t c = low; c <= high; c++) {
        int32_t lower = c | 0x20;

        if (lower < 'a' || lower > 'z')
            continue;
        regex_add_range(p, n, c ^ 0x20, c ^ 0x20);
        if (lower == 'k') /* the sign of Kelvin, and the long s */
            regex_add_range(p, n, 0x212a, 0x212a);
        if (lower == 's')
            regex_add_range(p, n, 0x17f, 0x17f);
    }
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
static void add_set(struct regex_parser *p, struct regex_node *n,
                    const struct set *set, bool negated)
{
    int32_t next = 0;
    /* These have NUL, which their texts cannot. */
    bool nul = !strcmp(set->name, "ascii") || !strcmp(set->name, "cntrl");

    if (nul && negated)
        next = 1;
    if (nul && !negated)
        regex_add_range(p, n, 0, 0);
    for (const char *s = set->pairs; *s; s += 2) {
        if (!negated)
            regex_add_folded(p, n, s[0], s[1]);
        else if (next < s[0])
            regex_add_range(p, n, next, s[0] - 1);
        next = s[1] + 1;
    }
    if (negated)
        regex_add_range(p, n, next, RUNE_MAX);
}

enum mst_code regex_take_set(struct regex_parser *p, struct regex_node *n,
                             bool *ret_taken)
{
    const struct set *set = NULL;
    char name;

    *ret_taken = true;
    if (regex_looking_at(p, "\\p") || regex_looking_at(p, "\\P"))
        return regex_take_unicode(p, n);
    if (p->end - p->at >= 2 && p->at[0] == '\\') {
        name = (char)(p->at[1] | 0x20);
        set = find_set(perl_sets, COUNT(perl_sets), &name, 1);
    }
    *ret_taken = set != NULL;
    if (!set)
        return MST_OK;
    p->at += 2;
    add_set(p, n, set, !(p->at[-1] & 0x20));
    return MST_OK;
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
static enum mst_code parse_hex(struct regex_parser *p, const char *start,
                               int32_t *ret)
{
    int32_t v = 0;

    if (p->at < p->end && *p->at == '{') {
        const char *digits = ++p->at;

        for (; p->at < p->end && digit(*p->at, 16) >= 0; p->at++) {
            v = v * 16 + digit(*p->at, 16);
            if (v > RUNE_MAX)
                return regex_bad(p, "invalid escape sequence", start,
                                 p->at + 1);
        }
        if (p->at == p->end || *p->at != '}' || p->at == digits)
            return regex_bad(p, "invalid escape sequence", start,
                             MIN(p->at + 1, p->end));
        p->at++;
    } else {
        for (int i = 0; i < 2; i++, p->at++) {
            if (p->at == p->end || digit(*p->at, 16) < 0)
                return regex_bad(p, "invalid escape sequence", start,
                                 MIN(p->at + 1, p->end));
            v = v * 16 + digit(*p->at, 16);
        }
    }
    *ret = v;
    return MST_OK;
}

enum mst_code regex_escape(struct regex_parser *p, int32_t *ret)
{
    static const char names[] = "nrtafv", values[] = "\n\r\t\a\f\v";
    const char *start = p->at++, *at;
    enum mst_code rc;
    int32_t c;

    if (p->at == p->end)
        return status_set(p->st, MST_INVALID_ARGUMENT, "trailing \\");
    rc = regex_next(p, &c);
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
        return regex_bad(p, "invalid escape sequence", start, p->at);
    *ret = c;
    return MST_OK;
}

/* ---- "[…]" ---- */

static enum mst_code class_char(struct regex_parser *p, const char *open,
                                int32_t *ret)
{
    if (p->at == p->end)
        return regex_bad(p, "missing ]", open, p->end);
    return *p->at == '\\' ? regex_escape(p, ret) : regex_next(p, ret);
}

static enum mst_code class_range(struct regex_parser *p, const char *open,
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
            rc = regex_bad(p, "invalid character class range", start, p->at);
    }
    if (!rc)
        regex_add_folded(p, n, low, high);
    return rc;
}

/* "[:alpha:]"; *ret_taken says whether there was such a thing. */
static enum mst_code class_posix(struct regex_parser *p, struct regex_node *n,
                                 bool *ret_taken)
{
    const char *stop = memmem(p->at + 2, (size_t)(p->end - p->at - 2), ":]", 2);
    const char *name = p->at + 2;
    const struct set *set;
    bool negated;

    *ret_taken = stop != NULL;
    if (!stop)
        return MST_OK;
    negated = *name == '^';
    name += negated;
    set = find_set(posix_sets, COUNT(posix_sets), name,
                   (size_t)(MAX(stop, name) - name));
    if (!set)
        return regex_bad(p, "invalid character class range", p->at, stop + 2);
    add_set(p, n, set, negated);
    p->at = stop + 2;
    return MST_OK;
}

enum mst_code regex_class(struct regex_parser *p, struct regex_node **ret)
{
    const char *open = p->at++;
    struct regex_node *n = regex_node(p, REGEX_CLASS);
    bool first = true, taken;
    enum mst_code rc = MST_OK;

    if (p->at < p->end && *p->at == '^') {
        n->negated = true;
        p->at++;
    }
    while (!rc && (p->at == p->end || *p->at != ']' || first)) {
        if (p->at == p->end)
            return regex_bad(p, "missing ]", open, p->end);
        first = false;
        taken = false;
        if (regex_looking_at(p, "[:"))
            rc = class_posix(p, n, &taken);
        if (rc || taken)
            continue;
        rc = regex_take_set(p, n, &taken);
        if (!rc && !taken)
            rc = class_range(p, open, n);
    }
    p->at++;
    *ret = n;
    return rc;
}
