#include "cluster/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/mem.h"

#define FORMAT   1
#define CRC_LEN  9    /* with the blank behind it */
#define BODY_MAX 1024 /* more than any entry that member_check() lets pass */

_Static_assert(BODY_MAX > MEMBER_JOB_MAX + MEMBER_ADDRESS_MAX + 100,
               "an entry must fit in a line, or it is not read again");

void record_text_done(struct record_text *t)
{
    mem_free(t->text);
    *t = (struct record_text){ 0 };
}

static void put_line(struct record_text *t, const char *body, size_t len)
{
    size_t need = t->len + CRC_LEN + len + 2;

    if (need > t->room) {
        t->room = need * 2;
        t->text = mem_grow(t->text, t->room, 1);
    }
    t->len += (size_t)sprintf(t->text + t->len, "%08" PRIx32 " %.*s\n",
                              crc32c(0, body, len), (int)len, body);
}

void record_put_head(struct record_text *t)
{
    char body[32];

    put_line(t, body, (size_t)sprintf(body, "journal %d", FORMAT));
}

void record_put(struct record_text *t, const struct member *m)
{
    char *body = mem_printf(
        "%" PRIu64 " %016" PRIx64 " %" PRIu64 " %s %s %d%s%s", m->version.epoch,
        m->version.origin, m->since_ms, m->address ? "add" : "remove", m->job,
        m->task, m->address ? " " : "", m->address ? m->address : "");

    put_line(t, body, strlen(body));
    mem_free(body);
}

void record_put_all(struct record_text *t, const struct members *members)
{
    struct members_walk at = { 0 };
    const struct member *m;

    record_put_head(t);
    while ((m = members_next(members, &at)))
        if (m->version.epoch)
            record_put(t, m);
}

/* Whether the line, given without its end, has the right checksum. Its body is
 * copied out, for it to have an end. */
static bool line_holds(const char *line, size_t len, char *body)
{
    char crc[CRC_LEN + 1];

    if (len <= CRC_LEN || len - CRC_LEN >= BODY_MAX || memchr(line, '\0', len))
        return false;
    memcpy(body, line + CRC_LEN, len - CRC_LEN);
    body[len - CRC_LEN] = '\0';
    snprintf(crc, sizeof(crc), "%08" PRIx32 " ",
             crc32c(0, body, len - CRC_LEN));
    return !memcmp(crc, line, CRC_LEN);
}

/* A number as record_put() writes it, and what ends it: no signs, no blanks, no
 * overflow. */
static bool number_read(char **at, unsigned base, char end, uint64_t *ret)
{
    const char *digits = "0123456789abcdef", *digit;
    char *p = *at;
    uint64_t n = 0;

    for (; *p && (digit = strchr(digits, *p)); p++) {
        uint64_t value = (uint64_t)(digit - digits);

        if (value >= base || n > (UINT64_MAX - value) / base)
            return false;
        n = n * base + value;
    }
    if (p == *at || *p != end)
        return false;
    *ret = n;
    *at = *p ? p + 1 : p;
    return true;
}

/* The next word, ended in place; NULL if there is no blank behind it. */
static char *word_read(char **at)
{
    char *word = *at, *end = strchr(word, ' ');

    if (!end)
        return NULL;
    *end = '\0';
    *at = end + 1;
    return word;
}

static bool entry_read(char *body, struct members *into)
{
    struct member m = { 0 };
    struct status st;
    const char *verb;
    uint64_t task;
    bool add;

    if (!number_read(&body, 10, ' ', &m.version.epoch) ||
        !number_read(&body, 16, ' ', &m.version.origin) ||
        !number_read(&body, 10, ' ', &m.since_ms))
        return false;
    verb = word_read(&body);
    m.job = word_read(&body);
    if (!verb || !m.job)
        return false;
    add = !strcmp(verb, "add");
    if (!add && strcmp(verb, "remove"))
        return false;
    if (!number_read(&body, 10, add ? ' ' : '\0', &task) ||
        task > MEMBER_TASK_MAX)
        return false;
    m.task = (int)task;
    m.address = add ? body : NULL;
    if (m.version.epoch == MEMBER_EPOCH_FLAGS || member_check(&m, &st))
        return false;
    members_merge(into, &m);
    return true;
}

static enum mst_code head_read(char *body, bool holds, struct status *st)
{
    uint64_t format;

    if (holds && !strncmp(body, "journal ", 8)) {
        body += 8;
        if (number_read(&body, 10, '\0', &format)) {
            if (format == FORMAT)
                return MST_OK;
            return status_set(st, MST_FAILED_PRECONDITION,
                              "it has format %" PRIu64
                              ", and this program knows %d only",
                              format, FORMAT);
        }
    }
    return status_set(st, MST_FAILED_PRECONDITION,
                      "it does not begin as a journal does");
}

/* A text without a whole line: the beginning of a journal, or something else
 * that must not be taken for one and cut. */
static enum mst_code stump_read(const char *text, size_t len, struct status *st)
{
    struct record_text head = { 0 };
    bool is;

    record_put_head(&head);
    is = len < head.len && (!len || !memcmp(text, head.text, len));
    record_text_done(&head);
    return is ? MST_OK : head_read(NULL, false, st);
}

enum mst_code record_scan(const char *text, size_t len, struct members *into,
                          struct record_report *ret, struct status *st)
{
    const char *end = len ? memchr(text, '\n', len) : NULL, *at;
    struct record_report report = { 0 };
    char body[BODY_MAX];
    int damaged = 0;
    bool holds;

    *ret = report;
    if (!end)
        return stump_read(text, len, st);
    holds = line_holds(text, (size_t)(end - text), body);
    if (head_read(body, holds, st))
        return st->code;
    at = end + 1;
    report.good = (size_t)(at - text);
    for (; (end = memchr(at, '\n', len - (size_t)(at - text))); at = end + 1) {
        if (!line_holds(at, (size_t)(end - at), body) ||
            !entry_read(body, into)) {
            damaged++;
            continue;
        }
        /* Damage before a line that holds is not the tail. */
        report.damaged += damaged;
        damaged = 0;
        report.entries++;
        report.good = (size_t)(end + 1 - text);
    }
    *ret = report;
    return MST_OK;
}
