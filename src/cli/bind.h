/*
 * Where a server listens. The answer is "host:port", or ":port" for every
 * address of the machine.
 *
 * Without --bind it is what the cluster calls this task, if that is plainly an
 * address of this machine: an address that an interface has, or a name that
 * means loopback. So a job on localhost is not open to the network. Any other
 * name may stand for a balancer, for a translated address, or (as Debian's
 * /etc/hosts has it) for 127.0.1.1, which no peer could reach; then the server
 * listens on all addresses, as TensorFlow's always does. No name is looked up,
 * so a slow name server does not delay the start.
 */
#ifndef CLI_BIND_H
#define CLI_BIND_H

#include "base/base.h"
#include "base/status.h"

/* flag is --bind or NULL: HOST, HOST:PORT, :PORT or PORT; what it leaves out
 * comes from address, which is valid. The answer is the caller's to free. */
MUST_USE enum mst_code bind_choose(const char *flag, const char *address,
                                   char **ret_bind, struct status *st);

#endif
