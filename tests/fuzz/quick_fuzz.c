/*
 * Frames of a lane from a peer that need not send what it should: the input is
 * what follows the preface. The server has a session "s" with one graph, "1",
 * which receives a value from the master's task, and is to end the lane, or to
 * go on, and to serve in any case.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/lane.h"
#include "service.h"

#define SERVICE "/tensorflow.WorkerService/"
#define TASK    "/job:worker/replica:0/task:0"

/* CreateWorkerSession: session "s" of that master. */
static const uint8_t create[] = "\x0a\x01s\x22\x1c" TASK;

static int connect_lane(void)
{
    struct sockaddr_in a = { .sin_family = AF_INET,
                             .sin_port = htons((uint16_t)server_port(server)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    CHECK(fd >= 0);
    while (connect(fd, (struct sockaddr *)&a, sizeof(a)))
        CHECK(errno == EINTR || errno == EALREADY);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct calling c;
    char buf[4096];
    int fd;

    if (!channel)
        start("ps", "worker");
    call(SERVICE "CreateWorkerSession", create, sizeof(create) - 1);
    call_for(&c, "/muster.Quick/Open", TASK, strlen(TASK), ALIVE_MS);
    CHECK(!c.code && c.len > 2 + LANE_PREFACE && c.head[1] == LANE_PREFACE);
    fd = connect_lane();
    (void)!send(fd, c.head + 2, LANE_PREFACE, MSG_NOSIGNAL);
    (void)!send(fd, data, size, MSG_NOSIGNAL);
    shutdown(fd, SHUT_WR);
    while (recv(fd, buf, sizeof(buf), 0) > 0)
        ;
    close(fd);
    call(SERVICE "DeleteWorkerSession", "\x0a\x01s", 3);
    CHECK(still_serves(SERVICE "GetStatus"));
    return 0;
}
