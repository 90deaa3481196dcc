#include "base/device.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The text of one part behind its name, up to the next '/' or ':'. */
struct word {
    const char *at;
    size_t len;
};

static struct word next_word(const char **at, const char *end)
{
    struct word w = { *at, 0 };

    while (*at < end && **at != '/' && **at != ':')
        ++*at;
    w.len = (size_t)(*at - w.at);
    return w;
}

static bool is(struct word w, const char *name)
{
    return strlen(name) == w.len && !strncasecmp(w.at, name, w.len);
}

static bool to_number(struct word w, int *ret)
{
    int n = 0;

    if (w.len == 1 && *w.at == '*')
        return true;
    if (!w.len || w.len > 9)
        return false;
    for (size_t i = 0; i < w.len; i++) {
        if (!isdigit((unsigned char)w.at[i]))
            return false;
        n = n * 10 + (w.at[i] - '0');
    }
    *ret = n;
    return true;
}

static bool to_text(struct word w, char *ret, size_t room, bool upper)
{
    if (!w.len || w.len >= room)
        return false;
    if (w.len == 1 && *w.at == '*')
        return true;
    for (size_t i = 0; i < w.len; i++)
        ret[i] = upper ? (char)toupper((unsigned char)w.at[i]) : w.at[i];
    ret[w.len] = '\0';
    return true;
}

static bool colon(const char **at, const char *end)
{
    if (*at == end || **at != ':')
        return false;
    ++*at;
    return true;
}

/* One "/name:value" or "/device:TYPE:ID" or "/cpu:0". */
static bool parse_part(const char **at, const char *end,
                       struct device_name *ret)
{
    struct word name = next_word(at, end);

    if (!colon(at, end))
        return false;
    if (is(name, "job"))
        return to_text(next_word(at, end), ret->job, sizeof(ret->job), false);
    if (is(name, "replica"))
        return to_number(next_word(at, end), &ret->replica);
    if (is(name, "task"))
        return to_number(next_word(at, end), &ret->task);
    if (is(name, "device")) {
        if (!to_text(next_word(at, end), ret->type, sizeof(ret->type), true))
            return false;
        return !colon(at, end) || to_number(next_word(at, end), &ret->id);
    }
    return to_text(name, ret->type, sizeof(ret->type), true) &&
           to_number(next_word(at, end), &ret->id);
}

bool device_parse(const char *text, size_t len, struct device_name *ret)
{
    const char *at = text, *end = text + len;

    *ret = (struct device_name){ .replica = -1, .task = -1, .id = -1 };
    while (at < end) {
        if (*at++ != '/')
            return false;
        if (!parse_part(&at, end, ret))
            return false;
    }
    return true;
}

bool device_matches(const struct device_name *a, const struct device_name *b)
{
    return (!*b->job || !strcmp(a->job, b->job)) &&
           (b->replica < 0 || a->replica == b->replica) &&
           (b->task < 0 || a->task == b->task) &&
           (!*b->type || !strcmp(a->type, b->type)) &&
           (b->id < 0 || a->id == b->id);
}

static bool clash(int a, int b)
{
    return a >= 0 && b >= 0 && a != b;
}

static bool clash_text(const char *a, const char *b)
{
    return *a && *b && strcmp(a, b);
}

bool device_compatible(const struct device_name *a, const struct device_name *b)
{
    return !clash_text(a->job, b->job) && !clash(a->replica, b->replica) &&
           !clash(a->task, b->task) && !clash_text(a->type, b->type) &&
           !clash(a->id, b->id);
}

bool device_merge(struct device_name *a, const struct device_name *b, bool soft)
{
    bool clashing = clash_text(a->type, b->type) || clash(a->id, b->id);

    if (clash_text(a->job, b->job) || clash(a->replica, b->replica) ||
        clash(a->task, b->task) || (clashing && !soft))
        return false;
    if (!*a->job)
        memcpy(a->job, b->job, sizeof(a->job));
    if (a->replica < 0)
        a->replica = b->replica;
    if (a->task < 0)
        a->task = b->task;
    if (clashing) {
        a->type[0] = '\0';
        a->id = -1;
        return true;
    }
    if (!*a->type)
        memcpy(a->type, b->type, sizeof(a->type));
    if (a->id < 0)
        a->id = b->id;
    return true;
}

void device_format(const struct device_name *d, char *buf, size_t room)
{
    size_t n = 0;

    buf[0] = '\0';
    if (*d->job)
        n += (size_t)snprintf(buf + n, room - n, "/job:%s", d->job);
    if (d->replica >= 0 && n < room)
        n += (size_t)snprintf(buf + n, room - n, "/replica:%d", d->replica);
    if (d->task >= 0 && n < room)
        n += (size_t)snprintf(buf + n, room - n, "/task:%d", d->task);
    if (*d->type && n < room)
        n += (size_t)snprintf(buf + n, room - n, "/device:%s", d->type);
    if (*d->type && d->id >= 0 && n < room)
        snprintf(buf + n, room - n, ":%d", d->id);
    else if (*d->type && n < room)
        snprintf(buf + n, room - n, ":*");
}
