/*
 * The journal of a ps. The checksums would stop nearly every input at the door,
 * so the input is a text of lines without them: each line gets the right one,
 * unless it begins with '!', which stands for a damaged one, and the first gets
 * a head before it, unless it begins with '?'. The bytes as they are are read,
 * too.
 *
 * Whatever is read must be a table that writes itself to a journal which is
 * read again to the same table, without damage.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/mem.h"
#include "cluster/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(const struct members *t)
{
    struct record_text text = { 0 };
    struct record_report report;
    struct members again;
    struct members_walk at = { 0 };
    const struct member *m, *other;
    struct status st;
    int count = 0;

    record_put_all(&text, t);
    members_init(&again);
    CHECK(!record_scan(text.text, text.len, &again, &report, &st));
    CHECK(!report.damaged && report.good == text.len);
    while ((m = members_next(t, &at))) {
        other = members_get(&again, m->job, m->task);
        CHECK(other && other->since_ms == m->since_ms);
        count++;
    }
    CHECK(count == report.entries && again.digest == t->digest);
    members_done(&again);
    record_text_done(&text);
}

static void scan(const char *text, size_t len)
{
    struct record_report report, cut;
    struct members t, part;
    struct status st = STATUS_INIT;

    members_init(&t);
    members_init(&part);
    if (!record_scan(text, len, &t, &report, &st)) {
        CHECK(report.good <= len);
        check_again(&t);
        /* Without its tail it says the same. */
        CHECK(!record_scan(text, report.good, &part, &cut, &st));
        CHECK(cut.good == report.good && cut.entries == report.entries &&
              cut.damaged == report.damaged && part.digest == t.digest);
    } else {
        CHECK(st.code == MST_FAILED_PRECONDITION && !t.revision);
    }
    members_done(&t);
    members_done(&part);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *at = (const char *)data, *end = at + size, *line_end;
    struct record_text text = { 0 };
    char *whole = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&whole, &len);

    scan(at, size);
    if (size && *at == '?') {
        at++;
    } else {
        record_put_head(&text);
        fwrite(text.text, 1, text.len, out);
        record_text_done(&text);
    }
    for (; at < end; at = line_end + 1) {
        size_t n;

        line_end = memchr(at, '\n', (size_t)(end - at));
        if (!line_end)
            line_end = end;
        n = (size_t)(line_end - at);
        fprintf(out, "%08" PRIx32 " ",
                crc32c(0, at, n) ^ (n && *at == '!' ? 1 : 0));
        fwrite(at, 1, n, out);
        if (line_end < end)
            fputc('\n', out);
    }
    fclose(out);
    scan(whole, len);
    free(whole);
    return 0;
}
