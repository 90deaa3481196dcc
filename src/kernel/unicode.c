#include "kernel/unicode.h"

#include <string.h>
#include <strings.h>
#include <unicode/ucnv.h>
#include <unicode/ustring.h>

#include "base/mem.h"

#define CODE_MAX 0x10ffff

enum mst_code unicode_policy_init(struct unicode_policy *p,
                                  const struct op_node *n, struct status *st)
{
    struct attr_text errors = op_attr_str(n, "errors");
    int64_t replacement = op_attr_int(n, "replacement_char");

    p->strict = !strcmp(errors.data, "strict");
    p->ignore = !strcmp(errors.data, "ignore");
    if (!p->strict && !p->ignore && strcmp(errors.data, "replace"))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "errors policy must be one of 'strict', 'replace', "
                          "or 'ignore'");
    if (replacement < 0 || replacement > CODE_MAX)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "replacement_char out of unicode codepoint range");
    p->replacement = (int32_t)replacement;
    return MST_OK;
}

enum unicode_encoding unicode_encoding_of(struct attr_text name)
{
    return !strcmp(name.data, "UTF-16-BE")   ? UNICODE_UTF16
           : !strcmp(name.data, "UTF-32-BE") ? UNICODE_UTF32
                                             : UNICODE_UTF8;
}

/* ---- reading ---- */

/* Notes the error in the context, a bool, and puts U+FFFD in. */
static void on_malformed(const void *context, UConverterToUnicodeArgs *args,
                         const char *bytes, int32_t len,
                         UConverterCallbackReason reason, UErrorCode *code)
{
    if (reason == UCNV_UNASSIGNED || reason == UCNV_ILLEGAL ||
        reason == UCNV_IRREGULAR)
        *(bool *)(uintptr_t)context = true;
    UCNV_TO_U_CALLBACK_SUBSTITUTE(NULL, args, bytes, len, reason, code);
}

bool unicode_reader_open(struct unicode_reader *r, const char *encoding)
{
    UErrorCode code = U_ZERO_ERROR;

    r->converter = ucnv_open(encoding, &code);
    if (U_SUCCESS(code))
        return true;
    unicode_reader_close(r);
    return false;
}

void unicode_reader_close(struct unicode_reader *r)
{
    if (r->converter)
        ucnv_close(r->converter);
    r->converter = NULL;
}

void unicode_read(struct unicode_reader *r, const struct str *s,
                  void (*fn)(void *arg, int32_t ch, int64_t bytes, bool bad),
                  void *arg)
{
    const char *at = s->len ? s->data : "", *end = at + s->len;
    UErrorCode code = U_ZERO_ERROR;
    bool bad = false;

    ucnv_reset(r->converter);
    ucnv_setToUCallBack(r->converter, on_malformed, &bad, NULL, NULL, &code);
    while (at < end && U_SUCCESS(code)) {
        const char *from = at;
        int32_t ch = ucnv_getNextUChar(r->converter, &at, end, &code);

        if (U_FAILURE(code))
            at = end;
        fn(arg, ch, at - from, bad);
        bad = false;
    }
}

/* ---- writing ---- */

void unicode_add(struct unicode_writer *w, int32_t ch)
{
    if (ch <= 0xffff) {
        *MEM_PUSH(w->units, w->count, w->room) = (uint16_t)ch;
        return;
    }
    *MEM_PUSH(w->units, w->count, w->room) = (uint16_t)(0xd7c0 + (ch >> 10));
    *MEM_PUSH(w->units, w->count, w->room) = (uint16_t)(0xdc00 | (ch & 0x3ff));
}

void unicode_writer_done(struct unicode_writer *w)
{
    mem_free(w->units);
}

/* The code point at *i, which moves on; a surrogate alone stays one. */
static uint32_t next_point(const struct unicode_writer *w, size_t *i)
{
    uint32_t ch = w->units[(*i)++];

    if (ch >> 10 == 0x36 && *i < w->count && w->units[*i] >> 10 == 0x37)
        ch = 0x10000 + ((ch & 0x3ff) << 10) + (w->units[(*i)++] & 0x3ff);
    return ch;
}

static void add_utf8(struct text *t, uint32_t ch)
{
    uint8_t b[4];
    size_t n;

    if (ch >> 11 == 0x1b) /* a surrogate alone has no UTF-8 */
        ch = 0xfffd;
    if (ch < 0x80) {
        b[0] = (uint8_t)ch;
        n = 1;
    } else if (ch < 0x800) {
        b[0] = (uint8_t)(0xc0 | ch >> 6);
        b[1] = (uint8_t)(0x80 | (ch & 63));
        n = 2;
    } else if (ch < 0x10000) {
        b[0] = (uint8_t)(0xe0 | ch >> 12);
        b[1] = (uint8_t)(0x80 | (ch >> 6 & 63));
        b[2] = (uint8_t)(0x80 | (ch & 63));
        n = 3;
    } else {
        b[0] = (uint8_t)(0xf0 | ch >> 18);
        b[1] = (uint8_t)(0x80 | (ch >> 12 & 63));
        b[2] = (uint8_t)(0x80 | (ch >> 6 & 63));
        b[3] = (uint8_t)(0x80 | (ch & 63));
        n = 4;
    }
    text_add(t, b, n);
}

void unicode_give(struct unicode_writer *w, enum unicode_encoding e,
                  struct str *ret)
{
    struct text t = { 0 };

    for (size_t i = 0; i < w->count;) {
        uint32_t ch = e == UNICODE_UTF16 ? w->units[i++] : next_point(w, &i);
        uint8_t b[4] = { (uint8_t)(ch >> 24), (uint8_t)(ch >> 16),
                         (uint8_t)(ch >> 8), (uint8_t)ch };

        if (e == UNICODE_UTF8)
            add_utf8(&t, ch);
        else if (e == UNICODE_UTF16)
            text_add(&t, b + 2, 2);
        else
            text_add(&t, b, 4);
    }
    w->count = 0;
    text_give(&t, ret);
}

/* ---- case ---- */

/* ICU's functions say how much room they need when they have too little. */
enum mst_code unicode_change_case(struct str *s, bool upper, struct status *st)
{
    struct unicode_writer from = { 0 }, to = { 0 };
    UErrorCode code = U_ZERO_ERROR;
    int32_t len, need;

    if (s->len > INT32_MAX / 4)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "A string of %zu bytes is too long", s->len);
    from.units = mem_array(s->len + 1, sizeof(*from.units));
    u_strFromUTF8WithSub((UChar *)from.units, (int32_t)s->len, &len,
                         s->len ? s->data : "", (int32_t)s->len, 0xfffd, NULL,
                         &code);
    /* A character becomes three at the most. */
    to.room = (size_t)len * 3 + 1;
    to.units = mem_array(to.room, sizeof(*to.units));
    code = U_ZERO_ERROR;
    need = upper ? u_strToUpper((UChar *)to.units, (int32_t)to.room,
                                (UChar *)from.units, len, "", &code)
                 : u_strToLower((UChar *)to.units, (int32_t)to.room,
                                (UChar *)from.units, len, "", &code);
    if (U_SUCCESS(code)) {
        to.count = (size_t)need;
        unicode_give(&to, UNICODE_UTF8, s);
    }
    unicode_writer_done(&from);
    unicode_writer_done(&to);
    return U_SUCCESS(code)
               ? MST_OK
               : status_set(st, MST_INTERNAL, "ICU says %s", u_errorName(code));
}
