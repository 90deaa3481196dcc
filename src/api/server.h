/* What the other files of this folder need of a server. */
#ifndef API_SERVER_H
#define API_SERVER_H

#include "muster/server.h"
#include "server/server.h"

/* The task inside of it, while it has not been stopped. */
struct server *server_of_api(mst_server *server);

#endif
