/* Sockets: opening them, and the options that the measurements asked for. All
 * of them are non-blocking and not inherited by child processes. */
#ifndef IO_SOCKET_H
#define IO_SOCKET_H

#include "base/status.h"
#include "io/addr.h"

#define SOCKET_LISTEN_MAX 8

/*
 * Listens on every address that the name stands for, all on one port. An empty
 * host is all addresses: one socket for IPv6 and IPv4, or IPv4 alone where
 * there is no IPv6. Resolves names, so it may block. ALREADY_EXISTS when the
 * port is taken.
 */
enum mst_code socket_listen(const struct addr_name *name,
                            int ret_fds[SOCKET_LISTEN_MAX], int *ret_count,
                            uint16_t *ret_port, struct status *st) MUST_USE;

/* Begins to connect; the socket becomes writable when that is over, and
 * socket_error() tells how it went. -1 with errno when it cannot begin. */
int socket_connect(const struct addr *to);
int socket_error(int fd); /* an errno; 0 when all is well */

/* For a socket that is connected: no delay, keepalive, buffer sizes. */
void socket_tune(int fd);

#endif
