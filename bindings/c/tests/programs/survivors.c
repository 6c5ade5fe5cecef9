/* Ranks as processes that know each other by an address; one is killed, the others are told which, and go on without it. */

#define _POSIX_C_SOURCE 200809L

#include "check.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3, LOST = 1 };

/* A port that nobody has at the moment. */
static unsigned free_port(void) {
    struct sockaddr_in address = {0};
    socklen_t length = sizeof address;
    int socket_of = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(socket_of >= 0 && bind(socket_of, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(getsockname(socket_of, (struct sockaddr *)&address, &length) == 0);
    close(socket_of);
    return ntohs(address.sin_port);
}

static void survive(uint32_t own, const char *where) {
    rcc_options_t options = RCC_OPTIONS_INIT;
    rcc_comm_t *comm, *rest;
    uint32_t rank, size, culprit = 9, sum = own;
    static float data[50000];
    options.late_ms = 60000;
    OK(rcc_comm_connect(own, RANKS, where, "of this test", &options, &comm));
    OK(rcc_all_reduce(comm, data, data, 50000, RCC_F32, RCC_SUM));
    if (own == LOST) {
        raise(SIGKILL);
    }
    REFUSED(RCC_ERROR_PEER_DIED, "rank 1", rcc_all_reduce(comm, data, data, 50000, RCC_F32, RCC_SUM));
    CHECK(rcc_last_error_ranks(&culprit, 1) == 1 && culprit == LOST);
    ENDS(RCC_ERROR_PEER_DIED, rcc_comm_failure(comm));
    OK(rcc_comm_shrink(comm, &rest));
    OK(rcc_comm_destroy(comm));
    OK(rcc_comm_rank(rest, &rank));
    OK(rcc_comm_size(rest, &size));
    CHECK(size == RANKS - 1 && rank == (own > LOST ? own - 1 : own));
    OK(rcc_all_reduce(rest, &sum, &sum, 1, RCC_U32, RCC_SUM));
    CHECK(sum == 0 + 2);
    OK(rcc_comm_destroy(rest));
}

int main(void) {
    char where[64];
    pid_t children[RANKS];
    snprintf(where, sizeof where, "127.0.0.1:%u", free_port());
    /* Before any call of rcc: communicators do not outlive fork(). */
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        children[rank] = fork();
        CHECK(children[rank] >= 0);
        if (children[rank] == 0) {
            survive(rank, where);
            exit(0);
        }
    }
    for (int rank = 0; rank < RANKS; rank++) {
        int status;
        CHECK(waitpid(children[rank], &status, 0) == children[rank]);
        CHECK(rank == LOST ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    puts("two are left");
    return 0;
}
