/*
 * Sets of characters that only Unicode's tables know, which ICU has: "\pL",
 * "\p{Greek}", and the other cases of letters beyond ASCII. Names are RE2's:
 * the general categories in short ("L", "Lu", but not "Cn"), scripts in full.
 */
#include <string.h>
#include <unicode/uchar.h>
#include <unicode/uset.h>

#include "kernel/regex_parser.h"

#define NAME_MAX 64

static void add_all(struct regex_parser *p, struct regex_node *n, USet *set)
{
    int count = uset_getItemCount(set);

    for (int i = 0; i < count; i++) {
        UErrorCode code = U_ZERO_ERROR;
        UChar32 low, high;

        /* 0: a range; anything else is a text that the set holds, too. */
        if (!uset_getItem(set, i, &low, &high, NULL, 0, &code))
            regex_add_range(p, n, low, high);
    }
}

/* The property and the value that a name means; false if it is none. */
static bool find_name(const char *name, UProperty *ret, int32_t *ret_value)
{
    static const UProperty where[] = { UCHAR_GENERAL_CATEGORY_MASK,
                                       UCHAR_SCRIPT };
    static const UPropertyNameChoice form[] = { U_SHORT_PROPERTY_NAME,
                                                U_LONG_PROPERTY_NAME };

    for (int i = 0; i < 2; i++) {
        int32_t v = u_getPropertyValueEnum(where[i], name);
        const char *exact = v == UCHAR_INVALID_CODE
                                ? NULL
                                : u_getPropertyValueName(where[i], v, form[i]);

        if (!exact || strcmp(exact, name))
            continue;
        *ret = where[i];
        *ret_value = v;
        return strcmp(name, "LC") && strcmp(name, "Cn");
    }
    return false;
}

static USet *make_set(const char *name)
{
    USet *set;
    UErrorCode code = U_ZERO_ERROR;
    UProperty property;
    int32_t value;

    if (!strcmp(name, "Any"))
        return uset_open(0, RUNE_MAX);
    if (!find_name(name, &property, &value))
        return NULL;
    if (property == UCHAR_GENERAL_CATEGORY_MASK)
        value &= ~(int32_t)U_GC_CN_MASK;
    set = uset_openEmpty();
    uset_applyIntPropertyValue(set, property, value, &code);
    return set;
}

enum mst_code regex_take_unicode(struct regex_parser *p, struct regex_node *n)
{
    const char *start = p->at, *name = p->at + 2, *stop;
    bool negated = start[1] == 'P';
    char text[NAME_MAX] = "";
    USet *set = NULL;
    int32_t rune;

    if (name == p->end)
        return regex_bad(p, "invalid character class range", start, p->end);
    if (*name == '{') {
        name++;
        stop = memchr(name, '}', (size_t)(p->end - name));
        if (!stop)
            return regex_bad(p, "invalid character class range", start, p->end);
        p->at = stop + 1;
    } else {
        stop = name + regex_rune(name, (size_t)(p->end - name), &rune);
        p->at = stop;
    }
    if (name < stop && *name == '^') {
        negated = !negated;
        name++;
    }
    if (stop - name < NAME_MAX) {
        memcpy(text, name, (size_t)(stop - name));
        set = make_set(text);
    }
    if (!set)
        return regex_bad(p, "invalid character class range", start, p->at);
    if (p->fold)
        uset_closeOver(set, USET_CASE_INSENSITIVE);
    if (negated)
        uset_complement(set);
    add_all(p, n, set);
    uset_close(set);
    return MST_OK;
}

void regex_add_cases(struct regex_parser *p, struct regex_node *n, int32_t low,
                     int32_t high)
{
    USet *set = uset_open(low, high);

    uset_closeOver(set, USET_CASE_INSENSITIVE);
    add_all(p, n, set);
    uset_close(set);
}
