#include "rpc/text.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <string.h>

#define TIMEOUT_DIGITS    8
#define TIMEOUT_VALUE_MAX 99999999u

/* From the longest to the shortest. */
static const struct unit {
    char name;
    uint64_t ns;
} units[] = {
    { 'H', 3600000000000ull }, { 'M', 60000000000ull }, { 'S', 1000000000ull },
    { 'm', 1000000ull },       { 'u', 1000ull },        { 'n', 1ull },
};

bool text_timeout_parse(const char *text, size_t len, uint64_t *ret_ns)
{
    uint64_t value = 0;

    if (len < 2 || len > TIMEOUT_DIGITS + 1)
        return false;
    for (size_t i = 0; i < len - 1; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(text[i] - '0');
    }
    for (size_t i = 0; i < COUNT(units); i++)
        if (text[len - 1] == units[i].name) {
            *ret_ns = value * units[i].ns;
            return true;
        }
    return false;
}

size_t text_timeout_format(uint64_t ns, char text[TEXT_TIMEOUT_MAX])
{
    size_t i = ns < 1000000000u ? 4 : 3; /* no finer than anyone can use */
    uint64_t value;

    while (i > 0 && (ns + units[i].ns - 1) / units[i].ns > TIMEOUT_VALUE_MAX)
        i--;
    value = ns / units[i].ns + (ns % units[i].ns != 0);
    value = MIN(value, (uint64_t)TIMEOUT_VALUE_MAX);
    return (size_t)snprintf(text, TEXT_TIMEOUT_MAX, "%u%c", (unsigned)value,
                            units[i].name);
}

static size_t encode(const char *msg, size_t len, char *text)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        uint8_t c = (uint8_t)msg[i];

        if (c >= 0x20 && c <= 0x7e && c != '%') {
            text[n++] = (char)c;
            continue;
        }
        text[n++] = '%';
        text[n++] = hex[c >> 4];
        text[n++] = hex[c & 15];
    }
    return n;
}

size_t text_message_encode(const char *msg, size_t len,
                           char text[TEXT_MESSAGE_ENCODED_MAX])
{
    size_t n;

    if (len <= TEXT_MESSAGE_MAX)
        return encode(msg, len, text);
    len = TEXT_MESSAGE_MAX;
    /* Not in the middle of a character. */
    while (len && ((uint8_t)msg[len] & 0xc0) == 0x80)
        len--;
    n = encode(msg, len, text);
    memcpy(text + n, TEXT_MESSAGE_CUT, sizeof(TEXT_MESSAGE_CUT) - 1);
    return n + sizeof(TEXT_MESSAGE_CUT) - 1;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

size_t text_message_decode(char *text, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        int high = -1, low = -1;

        if (text[i] == '%' && len - i > 2) {
            high = hex_digit(text[i + 1]);
            low = hex_digit(text[i + 2]);
        }
        if (high < 0 || low < 0) {
            text[n++] = text[i];
            continue;
        }
        text[n++] = (char)(high << 4 | low);
        i += 2;
    }
    return n;
}

static const char base64[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t text_base64_encode(const uint8_t *data, size_t len, char *out)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i += 3) {
        size_t have = MIN(len - i, (size_t)3);
        uint32_t v = (uint32_t)data[i] << 16;

        if (have > 1)
            v |= (uint32_t)data[i + 1] << 8;
        if (have > 2)
            v |= data[i + 2];
        for (size_t k = 0; k <= have; k++)
            out[n++] = base64[v >> (18 - 6 * k) & 63];
    }
    return n;
}

static int base64_digit(char c)
{
    const char *at = c ? strchr(base64, c) : NULL;

    return at ? (int)(at - base64) : -1;
}

bool text_base64_decode(const char *text, size_t len, uint8_t *out,
                        size_t *ret_len)
{
    uint32_t v = 0;
    size_t n = 0;
    int bits = 0;

    for (int pads = 0; pads < 2 && len && text[len - 1] == '='; pads++)
        len--;
    if (len % 4 == 1)
        return false;
    for (size_t i = 0; i < len; i++) {
        int digit = base64_digit(text[i]);

        if (digit < 0)
            return false;
        v = v << 6 | (uint32_t)digit;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            out[n++] = (uint8_t)(v >> bits);
        }
    }
    *ret_len = n;
    return true;
}

enum mst_code text_status_parse(const char *text, size_t len)
{
    unsigned value = 0;

    if (!len || len > 2)
        return MST_UNKNOWN;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return MST_UNKNOWN;
        value = value * 10 + (unsigned)(text[i] - '0');
    }
    return value <= MST_UNAUTHENTICATED ? (enum mst_code)value : MST_UNKNOWN;
}

enum mst_code text_status_of_http(int http_status)
{
    switch (http_status) {
    case 400:
        return MST_INTERNAL;
    case 401:
        return MST_UNAUTHENTICATED;
    case 403:
        return MST_PERMISSION_DENIED;
    case 404:
        return MST_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return MST_UNAVAILABLE;
    default:
        return MST_UNKNOWN;
    }
}

enum mst_code text_status_of_h2(uint32_t h2_error)
{
    switch (h2_error) {
    case NGHTTP2_REFUSED_STREAM:
        return MST_UNAVAILABLE;
    case NGHTTP2_CANCEL:
        return MST_CANCELLED;
    case NGHTTP2_ENHANCE_YOUR_CALM:
        return MST_RESOURCE_EXHAUSTED;
    case NGHTTP2_INADEQUATE_SECURITY:
        return MST_PERMISSION_DENIED;
    default:
        return MST_INTERNAL;
    }
}
