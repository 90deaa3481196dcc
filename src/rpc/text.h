/*
 * The values of gRPC's headers: timeouts, percent-encoded messages, base64. All
 * work on bytes with a length; outputs are bounded by the caller.
 */
#ifndef RPC_TEXT_H
#define RPC_TEXT_H

#include "base/base.h"
#include "muster/status.h"

#define TEXT_TIMEOUT_MAX 16

/* "10100m": up to eight digits and one of H M S m u n. False if it is not. */
bool text_timeout_parse(const char *text, size_t len, uint64_t *ret_ns);
/* Rounds up; never more than eight digits. Returns the length. */
size_t text_timeout_format(uint64_t ns, char text[TEXT_TIMEOUT_MAX]);

/* A message of more than TEXT_MESSAGE_MAX bytes is cut and says so, as
 * TensorFlow does it, or peers would refuse the headers. */
#define TEXT_MESSAGE_MAX 3072
#define TEXT_MESSAGE_CUT "... [truncated]"
#define TEXT_MESSAGE_ENCODED_MAX                                               \
    (3 * (TEXT_MESSAGE_MAX + sizeof(TEXT_MESSAGE_CUT)))

size_t text_message_encode(const char *msg, size_t len,
                           char text[TEXT_MESSAGE_ENCODED_MAX]);
/* In place; what is no valid escape stays as it is. Returns the length. */
size_t text_message_decode(char *text, size_t len);

/* out has room for 4 bytes for every 3 begun. No padding, as gRPC does it. */
size_t text_base64_encode(const uint8_t *data, size_t len, char *out);
/* out has room for 3 bytes for every 4 begun. With or without padding. False if
 * it is not base64. */
bool text_base64_decode(const char *text, size_t len, uint8_t *out,
                        size_t *ret_len);

/* "0" to "16"; other numbers are UNKNOWN. */
enum mst_code text_status_parse(const char *text, size_t len);
/* What an HTTP status, or an HTTP/2 error, means for a call that got no gRPC
 * status. */
enum mst_code text_status_of_http(int http_status);
enum mst_code text_status_of_h2(uint32_t h2_error);

#endif
