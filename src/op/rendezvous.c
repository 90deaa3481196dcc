#include "op/rendezvous.h"

#include <string.h>

#include "base/hash.h"

/* Five parts; the second 16 hex digits, the last "frame:iter". */
bool rdv_key_parse(const char *text, size_t len, struct rdv_key *ret)
{
    const char *part[6] = { text };
    const char *end = text + len;
    int n = 1;

    for (const char *p = text; p < end && n < 6; p++)
        if (*p == ';')
            part[n++] = p + 1;
    if (n != 5 || memchr(part[4], ';', (size_t)(end - part[4])))
        return false;
    if (!memchr(part[4], ':', (size_t)(end - part[4])))
        return false;
    if (part[2] - part[1] != 17)
        return false;
    ret->text = text;
    ret->len = len;
    ret->hash = hash_bytes(text, len, HASH_SEED);
    ret->src_device = text;
    ret->src_device_len = (size_t)(part[1] - 1 - text);
    ret->dst_device = part[2];
    ret->dst_device_len = (size_t)(part[3] - 1 - part[2]);
    ret->late = false;
    return true;
}
