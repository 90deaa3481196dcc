/*
 * Who is at the door? Connections of two kinds come to one port: HTTP/2, and
 * lanes of our own servers (rpc/lane.h). Both begin with a text, so the first
 * byte tells; it is only looked at. Until it is there the connection is a
 * guest, for as long as a peer may take to say who it is.
 */
#ifndef RPC_DOOR_H
#define RPC_DOOR_H

#include "rpc/shard.h"

/* Takes the socket. */
void door_accept(struct shard *sh, int fd);
/* Nobody else is let in, and those who wait have to go. */
void door_close(struct shard *sh);

#endif
