/*
 * Network addresses: how people write them, how the kernel has them, and how
 * gRPC prints them.
 */
#ifndef IO_ADDR_H
#define IO_ADDR_H

#include <sys/socket.h>

#include "base/status.h"

#define ADDR_HOST_MAX 256
#define ADDR_TEXT_MAX 80

/* An address as it is written: "host:port", "[v6]:port" or ":port". */
struct addr_name {
    char host[ADDR_HOST_MAX]; /* without brackets; "" for all addresses */
    uint16_t port;
};

struct addr {
    socklen_t len;
    union {
        struct sockaddr sa;
        struct sockaddr_storage room;
    };
};

/* INVALID_ARGUMENT with the cause when text is none of the three forms. */
enum mst_code addr_parse(const char *text, struct addr_name *ret,
                         struct status *st) MUST_USE;
/* False unless the host is a number such as 10.0.0.1 or ::1. */
bool addr_numeric(const struct addr_name *name, struct addr *ret);
/* "ipv4:127.0.0.1:80", "ipv6:[::1]:80" */
void addr_print(const struct addr *a, char text[ADDR_TEXT_MAX]);
uint16_t addr_port(const struct addr *a);
void addr_set_port(struct addr *a, uint16_t port);
/* The peer of this connected socket is on the same host. */
bool addr_same_host(int fd);

#endif
