#include "io/addr.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum mst_code bad(const char *text, const char *why, struct status *st)
{
    return status_set(st, MST_INVALID_ARGUMENT,
                      "address \"%.200s\" is not host:port: %s", text, why);
}

static bool parse_port(const char *text, uint16_t *ret)
{
    unsigned long port = 0;

    if (!*text || strlen(text) > 5)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return false;
        port = port * 10 + (unsigned long)(*text - '0');
    }
    *ret = (uint16_t)port;
    return port <= UINT16_MAX;
}

enum mst_code addr_parse(const char *text, struct addr_name *ret,
                         struct status *st)
{
    const char *host = text, *colon = strrchr(text, ':');
    struct addr_name name = { 0 };
    size_t len;

    if (!colon)
        return bad(text, "there is no port", st);
    len = (size_t)(colon - text);
    if (*text == '[') {
        if (len < 2 || colon[-1] != ']')
            return bad(text, "the bracket is not closed before the port", st);
        host++;
        len -= 2;
    } else if (memchr(text, ':', len)) {
        return bad(text, "an IPv6 address goes in brackets", st);
    }
    if (len >= sizeof(name.host))
        return bad(text, "the host name is too long", st);
    if (!parse_port(colon + 1, &name.port))
        return bad(text, "the port is not a number from 0 to 65535", st);
    memcpy(name.host, host, len);
    *ret = name;
    return MST_OK;
}

bool addr_numeric(const struct addr_name *name, struct addr *ret)
{
    struct addrinfo hints = {
        .ai_flags = AI_NUMERICHOST,
        .ai_socktype = SOCK_STREAM,
    };
    struct addrinfo *found;

    if (!*name->host || getaddrinfo(name->host, NULL, &hints, &found))
        return false;
    memcpy(&ret->room, found->ai_addr, found->ai_addrlen);
    ret->len = found->ai_addrlen;
    freeaddrinfo(found);
    addr_set_port(ret, name->port);
    return true;
}

uint16_t addr_port(const struct addr *a)
{
    if (a->sa.sa_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)&a->room)->sin6_port);
    return ntohs(((const struct sockaddr_in *)&a->room)->sin_port);
}

void addr_set_port(struct addr *a, uint16_t port)
{
    if (a->sa.sa_family == AF_INET6)
        ((struct sockaddr_in6 *)&a->room)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)&a->room)->sin_port = htons(port);
}

/* An IPv4 address that came in on an IPv6 socket is what it is: IPv4. */
static struct addr unmapped(const struct addr *a)
{
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&a->room;
    struct addr v4 = { .len = sizeof(struct sockaddr_in) };
    struct sockaddr_in *in = (struct sockaddr_in *)&v4.room;

    if (a->sa.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
        return *a;
    in->sin_family = AF_INET;
    in->sin_port = in6->sin6_port;
    memcpy(&in->sin_addr, in6->sin6_addr.s6_addr + 12, 4);
    return v4;
}

static const void *bytes_of(const struct addr *a)
{
    if (a->sa.sa_family == AF_INET6)
        return &((const struct sockaddr_in6 *)&a->room)->sin6_addr;
    return &((const struct sockaddr_in *)&a->room)->sin_addr;
}

void addr_print(const struct addr *mapped, char text[ADDR_TEXT_MAX])
{
    struct addr a = unmapped(mapped);
    char host[INET6_ADDRSTRLEN] = "?";
    bool v6 = a.sa.sa_family == AF_INET6;

    inet_ntop(a.sa.sa_family, bytes_of(&a), host, sizeof(host));
    snprintf(text, ADDR_TEXT_MAX, v6 ? "ipv6:[%s]:%u" : "ipv4:%s:%u", host,
             addr_port(&a));
}

bool addr_same_host(int fd)
{
    struct addr here = { .len = sizeof(here.room) };
    struct addr there = { .len = sizeof(there.room) };

    if (getsockname(fd, &here.sa, &here.len) ||
        getpeername(fd, &there.sa, &there.len) ||
        here.sa.sa_family != there.sa.sa_family)
        return false;
    return !memcmp(bytes_of(&here), bytes_of(&there),
                   here.sa.sa_family == AF_INET6 ? 16 : 4);
}
