#include "cli/bind.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>

#include "base/mem.h"
#include "cluster/spec.h"

static bool loopback_name(const char *host)
{
    static const char tail[] = ".localhost";
    size_t len = strlen(host);

    return !strcasecmp(host, "localhost") ||
           (len >= sizeof(tail) &&
            !strcasecmp(host + len - (sizeof(tail) - 1), tail));
}

static bool on_interface(int family, const void *wanted, size_t size)
{
    struct ifaddrs *all, *i;
    bool found = false;

    if (getifaddrs(&all))
        return false;
    for (i = all; i && !found; i = i->ifa_next) {
        const void *have;

        if (!i->ifa_addr || i->ifa_addr->sa_family != family)
            continue;
        if (family == AF_INET)
            have = &((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr;
        else
            have = &((struct sockaddr_in6 *)(void *)i->ifa_addr)->sin6_addr;
        found = !memcmp(have, wanted, size);
    }
    freeifaddrs(all);
    return found;
}

/* An address in digits that this machine has, or a name of its loopback. */
static bool own_host(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;

    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127 ||
               on_interface(AF_INET, &v4, sizeof(v4));
    if (inet_pton(AF_INET6, host, &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6) ||
               on_interface(AF_INET6, &v6, sizeof(v6));
    return loopback_name(host);
}

static char *join(const char *host, int port)
{
    return mem_printf(strchr(host, ':') ? "[%s]:%d" : "%s:%d", host, port);
}

/* Whether the flag names no port: a name, v4 digits, "::1" or "[::1]". */
static bool host_alone(const char *flag)
{
    const char *colon = strchr(flag, ':');

    if (*flag == '[')
        return !strstr(flag, "]:");
    return !colon || strchr(colon + 1, ':');
}

static enum mst_code from_flag(const char *flag, int port, char **ret_bind,
                               struct status *st)
{
    bool no_host = *flag == ':' && !strchr(flag + 1, ':');
    bool number = strspn(flag, "0123456789") == strlen(flag);
    struct cluster_address a;
    enum mst_code code;
    char *full;

    /* The checks are those of a whole address; a host stands in for none. */
    if (no_host || number)
        full = mem_printf("all:%s", flag + no_host);
    else if (host_alone(flag))
        full =
            *flag == '[' ? mem_printf("%s:%d", flag, port) : join(flag, port);
    else
        full = mem_str(flag);
    code = cluster_address_split(full, &a, st);
    if (code)
        status_set(st, code, "--bind=%s is not HOST, HOST:PORT or :PORT", flag);
    else if (no_host || number)
        *ret_bind = join("", a.port);
    else
        *ret_bind = mem_str(full);
    mem_free(full);
    return code;
}

enum mst_code bind_choose(const char *flag, const char *address,
                          char **ret_bind, struct status *st)
{
    struct cluster_address a;
    enum mst_code code = cluster_address_split(address, &a, st);
    char *host;

    if (code)
        return code;
    if (flag)
        return from_flag(flag, a.port, ret_bind, st);
    host = mem_strn(a.host, (size_t)a.host_len);
    *ret_bind = join(own_host(host) ? host : "", a.port);
    mem_free(host);
    return MST_OK;
}
