/* Threads that use each other's handles without asking: making, calling, freeing, ending, all at once. Nothing crashes, what is refused is
 * refused as what it is, and a call that succeeds is right. Communicators have one rank, so that no call waits for another. */

#define _POSIX_C_SOURCE 200809L

#include "check.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 4, SLOTS = 3, TURNS = 3000, COUNT = 1500 };

static _Atomic(rcc_comm_t *) comms[SLOTS];
static _Atomic(rcc_request_t *) requests[THREADS];
static atomic_int well, refused, ended;

/* Whether it went well; if not, it must be for one of the reasons that there are. */
static int fair(rcc_status_t status) {
    switch (status) {
    case RCC_SUCCESS: atomic_fetch_add(&well, 1); return 1;
    case RCC_ERROR_ABORTED: atomic_fetch_add(&ended, 1); return 0;
    case RCC_ERROR_INVALID:
        CHECK(strstr(rcc_last_error(), "is not there any more") != NULL || strstr(rcc_last_error(), "another thread") != NULL ||
              strstr(rcc_last_error(), "is NULL") != NULL);
        atomic_fetch_add(&refused, 1);
        return 0;
    default:
        fprintf(stderr, "%s: %s\n", rcc_status_name(status), rcc_last_error());
        exit(1);
    }
}

static rcc_comm_t *made(void) {
    rcc_options_t options = RCC_OPTIONS_INIT;
    rcc_comm_t *comm;
    options.registered = 1 << 16;
    OK(rcc_comm_connect(0, 1, NULL, "secret", &options, &comm));
    return comm;
}

static void *abuse(void *which) {
    size_t own = (size_t)(uintptr_t)which;
    uint32_t random = (uint32_t)own * 2654435761u + 1, number;
    int32_t in[COUNT], out[COUNT];
    for (int turn = 0; turn < TURNS; turn++) {
        random = random * 1664525u + 1013904223u;
        size_t slot = (random >> 8) % SLOTS;
        rcc_comm_t *comm = atomic_load(&comms[slot]), *copy;
        rcc_request_t *request;
        rcc_status_t status;
        void *memory;
        size_t count = random >> 20 & 1 ? COUNT : 3;
        for (size_t i = 0; i < count; i++) in[i] = (int32_t)(turn + i);
        memset(out, 0, sizeof out);
        switch ((random >> 24) % 11) {
        case 0:
            if (fair(rcc_comm_destroy(comm))) {
                rcc_comm_t *fresh = made(), *old = comm;
                if (!atomic_compare_exchange_strong(&comms[slot], &old, fresh)) OK(rcc_comm_destroy(fresh));
            }
            break;
        case 1:
            if (turn % 8 == 0) fair(rcc_comm_abort(comm, "by one of them"));
            break;
        case 2:
            if (fair(rcc_comm_rank(comm, &number))) CHECK(number == 0);
            if (fair(rcc_comm_size(comm, &number))) CHECK(number == 1);
            fair(rcc_comm_failure(comm));
            break;
        case 3:
            if (fair(rcc_comm_duplicate(comm, &copy))) {
                if (fair(rcc_all_reduce(copy, in, out, count, RCC_I32, RCC_SUM))) CHECK(out[count - 1] == in[count - 1]);
                OK(rcc_comm_destroy(copy));
            }
            break;
        case 4:
            /* What could not be freed, because another was inside, is there until the communicator goes. */
            status = rcc_alloc(comm, 64, &memory);
            if (status != RCC_ERROR_RESOURCE && fair(status)) fair(rcc_free(comm, memory));
            break;
        case 5:
            /* Another may wait for it before this one does; when it is not there any more it has ended. */
            if (fair(rcc_all_reduce_start(comm, in, out, count, RCC_I32, RCC_MAX, &request))) {
                rcc_request_t *mine = request;
                atomic_store(&requests[own], request);
                do {
                    request = mine;
                    status = rcc_wait(&request);
                } while (!fair(status) && status == RCC_ERROR_INVALID && strstr(rcc_last_error(), "another thread") != NULL);
                if (status == RCC_SUCCESS) CHECK(out[count - 1] == in[count - 1]);
            }
            break;
        case 6:
            request = atomic_load(&requests[(own + 1) % THREADS]);
            fair(rcc_wait(&request));
            break;
        default:
            if (fair(rcc_all_reduce(comm, in, out, count, RCC_I32, RCC_SUM))) CHECK(out[count - 1] == in[count - 1]);
        }
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int slot = 0; slot < SLOTS; slot++) atomic_store(&comms[slot], made());
    for (uintptr_t at = 0; at < THREADS; at++) CHECK(pthread_create(&threads[at], NULL, abuse, (void *)at) == 0);
    for (int at = 0; at < THREADS; at++) CHECK(pthread_join(threads[at], NULL) == 0);
    /* Each of them has happened, or this was no test. */
    CHECK(atomic_load(&well) > TURNS && atomic_load(&refused) > 10 && atomic_load(&ended) > 10);
    for (int slot = 0; slot < SLOTS; slot++) OK(rcc_comm_destroy(atomic_load(&comms[slot])));
    puts("nothing broke");
    return 0;
}
