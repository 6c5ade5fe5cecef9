/* What is wrong is told, in words, and ends nothing that it need not end. One rank alone, and ranks as threads. */

#define _POSIX_C_SOURCE 200809L

#include "check.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

enum { SIGNALS = 65 };

static const rcc_options_t defaults = RCC_OPTIONS_INIT;

/* A communicator of one rank. */
static rcc_comm_t *alone(void) {
    rcc_options_t options = defaults;
    rcc_comm_t *comm = NULL;
    options.registered = 1 << 20;
    OK(rcc_comm_connect(0, 1, NULL, "secret", &options, &comm));
    CHECK(comm != NULL);
    return comm;
}

static void sleep_ms(long ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* It goes on as if nothing had been. */
static void well(rcc_comm_t *comm) {
    float one = 1;
    OK(rcc_comm_failure(comm));
    OK(rcc_all_reduce(comm, &one, &one, 1, RCC_F32, RCC_SUM));
}

static void nothing_given(rcc_comm_t *comm) {
    uint32_t number = 7;
    int done = 7;
    float data[4] = {0};
    rcc_comm_t *other = NULL;
    rcc_request_t *request = NULL;
    rcc_op_t op = 0;
    rcc_algorithm_t algorithm = 0;
    void *memory = NULL;
    const char *name = NULL;
    INVALID("the communicator is NULL", rcc_comm_rank(NULL, &number));
    CHECK(number == UINT32_MAX);
    INVALID("the communicator is NULL", rcc_comm_size(NULL, &number));
    CHECK(number == 0);
    INVALID("`rank` is NULL", rcc_comm_rank(comm, NULL));
    INVALID("`size` is NULL", rcc_comm_size(comm, NULL));
    INVALID("`comm` is NULL", rcc_comm_from_env(NULL, NULL));
    INVALID("`comm` is NULL", rcc_comm_connect(0, 1, NULL, "secret", NULL, NULL));
    INVALID("`secret` is NULL", rcc_comm_connect(0, 1, NULL, NULL, NULL, &other));
    INVALID("the secret is empty", rcc_comm_connect(0, 1, NULL, "", NULL, &other));
    INVALID("`address` is NULL", rcc_comm_connect(0, 2, NULL, "secret", NULL, &other));
    INVALID("is no address", rcc_comm_connect(0, 2, "nowhere", "secret", NULL, &other));
    INVALID("rank 2 does not exist", rcc_comm_connect(2, 2, "localhost:1", "secret", NULL, &other));
    INVALID("not 0", rcc_comm_connect(0, 0, NULL, "secret", NULL, &other));
    INVALID("`comms` is NULL", rcc_comm_threads(2, NULL, NULL));
    INVALID("not 0", rcc_comm_threads(0, NULL, &other));
    INVALID("not 4294967295", rcc_comm_threads(UINT32_MAX, NULL, &other));
    INVALID("`part` is NULL", rcc_comm_split(comm, 0, 0, NULL));
    INVALID("the communicator is NULL", rcc_comm_split(NULL, 0, 0, &other));
    INVALID("above 2^32", rcc_comm_split(comm, INT64_MAX, 0, &other));
    INVALID("`copy` is NULL", rcc_comm_duplicate(comm, NULL));
    INVALID("the communicator is NULL", rcc_comm_duplicate(NULL, &other));
    INVALID("`rest` is NULL", rcc_comm_shrink(comm, NULL));
    INVALID("the communicator is NULL", rcc_comm_abort(NULL, "why"));
    INVALID("the communicator is NULL", rcc_comm_failure(NULL));
    CHECK(other == NULL);
    OK(rcc_comm_destroy(NULL));
    INVALID("the communicator is NULL", rcc_barrier(NULL));
    INVALID("the communicator is NULL", rcc_all_reduce(NULL, data, data, 4, RCC_F32, RCC_SUM));
    INVALID("`send` is NULL", rcc_all_reduce(comm, NULL, data, 4, RCC_F32, RCC_SUM));
    INVALID("`recv` is NULL", rcc_all_reduce(comm, data, NULL, 4, RCC_F32, RCC_SUM));
    INVALID("`data` is NULL", rcc_broadcast(comm, NULL, 4, RCC_F32, 0));
    INVALID("`send` is NULL", rcc_scatter(comm, NULL, data, 4, RCC_F32, 0));
    INVALID("`request` is NULL", rcc_all_reduce_start(comm, data, data, 4, RCC_F32, RCC_SUM, NULL));
    INVALID("`call` is NULL", rcc_call(NULL));
    INVALID("`call` is NULL", rcc_start(NULL, &request));
    INVALID("`calls` is NULL", rcc_group(NULL, 1));
    OK(rcc_group(NULL, 0));
    INVALID("`request` is NULL", rcc_wait(NULL));
    INVALID("`request` is NULL", rcc_test(NULL, &done));
    CHECK(done == 0);
    INVALID("`done` is NULL", rcc_test(&request, NULL));
    INVALID("`requests` is NULL", rcc_wait_all(NULL, 2));
    OK(rcc_wait(&request));
    OK(rcc_wait_all(&request, 1));
    OK(rcc_wait_all(NULL, 0));
    OK(rcc_test(&request, &done));
    CHECK(done == 1);
    INVALID("`op` is NULL", rcc_op_premul_sum(2, NULL));
    INVALID("`op` is NULL", rcc_op_create("name", RCC_F32, NULL, NULL, NULL));
    INVALID("the function that combines is NULL", rcc_op_create("name", RCC_F32, NULL, NULL, &op));
    INVALID("`name` is NULL", rcc_op_create(NULL, RCC_F32, NULL, NULL, &op));
    INVALID("the operator is NULL", rcc_op_free(0));
    INVALID("`source` is NULL", rcc_compile(comm, NULL, &algorithm));
    INVALID("`algorithm` is NULL", rcc_load(comm, "file", NULL));
    INVALID("`file` is NULL", rcc_load(comm, NULL, &algorithm));
    INVALID("the algorithm is 0", rcc_run(comm, 0, RCC_F32, RCC_SUM, NULL, 0));
    INVALID("the algorithm is 0", rcc_run_start(comm, 0, RCC_F32, RCC_SUM, NULL, 0, &request));
    INVALID("the algorithm is 0", rcc_algorithm_name(comm, 0, &name));
    INVALID("`memory` is NULL", rcc_alloc(comm, 1, NULL));
    INVALID("the communicator is NULL", rcc_alloc(NULL, 1, &memory));
    CHECK(memory == NULL && algorithm == 0 && op == 0 && request == NULL && name == NULL);
    OK(rcc_free(comm, NULL));
    CHECK(rcc_last_error_ranks(NULL, 5) == 0);
    well(comm);
}

static void wrong_numbers(rcc_comm_t *comm) {
    float data[8] = {0};
    rcc_op_t op;
    rcc_call_t call = RCC_CALL_INIT;
    int numbers[] = {-1, 12, INT_MAX, INT_MIN};
    for (int i = 0; i < 4; i++) {
        INVALID("is no rcc_dtype_t",
                rcc_all_reduce(comm, data, data, 4, (rcc_dtype_t)numbers[i], RCC_SUM));
        INVALID("is no rcc_dtype_t", rcc_op_create("name", (rcc_dtype_t)numbers[i], NULL, NULL, &op));
        CHECK(rcc_dtype_size((rcc_dtype_t)numbers[i]) == 0);
        CHECK(strcmp(rcc_status_name((rcc_status_t)numbers[i]), "no status of rcc") == 0);
        call.comm = comm;
        call.collective = (rcc_collective_t)numbers[i];
        INVALID("is no rcc_collective_t", rcc_call(&call));
    }
    call.collective = RCC_ALL_REDUCE;
    call.reserved = 1;
    INVALID("`call.reserved` is not 0", rcc_call(&call));
    INVALID("0x5 is no operator", rcc_all_reduce(comm, data, data, 4, RCC_F32, 5));
    INVALID("is no operator", rcc_all_reduce(comm, data, data, 4, RCC_F32, UINT64_MAX));
    INVALID("root 1 is no rank", rcc_broadcast(comm, data, 4, RCC_F32, 1));
    INVALID("root 4294967295 is no rank", rcc_reduce(comm, data, data, 4, RCC_F32, RCC_SUM, UINT32_MAX));
    INVALID("too many", rcc_all_reduce(comm, data, data, SIZE_MAX, RCC_F32, RCC_SUM));
    INVALID("cannot have", rcc_all_reduce(comm, data, data, SIZE_MAX / 4, RCC_F32, RCC_SUM));
    INVALID("cannot have", rcc_all_reduce(comm, (char *)UINTPTR_MAX - 8, data, 4, RCC_F32, RCC_SUM));
    INVALID("is not aligned", rcc_comm_rank(comm, (uint32_t *)(void *)((char *)data + 1)));
    /* Overlaps that are no call in place: of a small call, and of one with a plan. */
    INVALID("do not lie to each other", rcc_all_reduce(comm, data, data + 1, 4, RCC_F32, RCC_SUM));
    float *many = calloc(20001, sizeof *many);
    CHECK(many != NULL);
    INVALID("do not lie to each other", rcc_all_reduce(comm, many, many + 1, 20000, RCC_F32, RCC_SUM));
    REFUSED(RCC_ERROR_UNSUPPORTED, "alltoall", rcc_all_to_all(comm, data, data, 4, RCC_F32));
    INVALID("do not lie to each other", rcc_all_to_all(comm, many, many, 20000, RCC_F32));
    free(many);
    well(comm);
}

static void structures(void) {
    struct {
        rcc_options_t known;
        uint64_t later;
    } longer = {RCC_OPTIONS_INIT, 0};
    rcc_options_t options = RCC_OPTIONS_INIT;
    rcc_comm_t *comm;
    options.size = 0;
    INVALID("`options.size` is 0", rcc_comm_connect(0, 1, NULL, "secret", &options, &comm));
    options.size = 63; /* Of no version: the first had 64. */
    INVALID("`options.size` is", rcc_comm_connect(0, 1, NULL, "secret", &options, &comm));
    options.size = SIZE_MAX;
    INVALID("`options.size` is", rcc_comm_connect(0, 1, NULL, "secret", &options, &comm));
    /* Of a later version: as long as it says nothing new, it is as good as this one. */
    longer.known.size = sizeof longer;
    OK(rcc_comm_connect(0, 1, NULL, "secret", &longer.known, &comm));
    OK(rcc_comm_destroy(comm));
    /* Of the first version: what lies after it is not looked at. */
    longer.known.size = 64;
    longer.later = 1;
    OK(rcc_comm_connect(0, 1, NULL, "secret", &longer.known, &comm));
    OK(rcc_comm_destroy(comm));
    longer.known.size = sizeof longer;
    REFUSED(RCC_ERROR_UNSUPPORTED, "a later version", rcc_comm_connect(0, 1, NULL, "secret", &longer.known, &comm));
    options = defaults;
    options.tuning = "/nowhere/tuning.toml";
    INVALID("/nowhere/tuning.toml cannot be used", rcc_comm_connect(0, 1, NULL, "secret", &options, &comm));
    options.tuning = "\xff";
    INVALID("`options.tuning` is not text", rcc_comm_connect(0, 1, NULL, "secret", &options, &comm));
    CHECK(comm == NULL);
    ENDS(RCC_ERROR_INVALID, rcc_comm_from_env(NULL, &comm)); /* No launcher has started this. */
}

static void handles(void) {
    rcc_comm_t *comm = alone(), *again;
    rcc_request_t *request, *copy;
    rcc_op_t op;
    uint32_t rank;
    int done;
    float x = 1;
    uintptr_t wrong[] = {1, 2, 3, 4096, UINTPTR_MAX, (uintptr_t)&comm, (uintptr_t)comm + 16,
                         (uintptr_t)comm ^ (UINT64_C(1) << 24)};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        rcc_comm_t *no_comm = (rcc_comm_t *)wrong[i];
        rcc_request_t *no_request = (rcc_request_t *)wrong[i];
        ENDS(RCC_ERROR_INVALID, rcc_barrier(no_comm));
        ENDS(RCC_ERROR_INVALID, rcc_comm_rank(no_comm, &rank));
        ENDS(RCC_ERROR_INVALID, rcc_comm_abort(no_comm, "why"));
        ENDS(RCC_ERROR_INVALID, rcc_comm_destroy(no_comm));
        ENDS(RCC_ERROR_INVALID, rcc_wait(&no_request));
        ENDS(RCC_ERROR_INVALID, rcc_test(&no_request, &done));
        ENDS(RCC_ERROR_INVALID, rcc_op_free(wrong[i]));
    }
    /* Each of another kind. */
    OK(rcc_all_reduce_start(comm, &x, &x, 1, RCC_F32, RCC_SUM, &request));
    OK(rcc_op_premul_sum(2, &op));
    INVALID("is no communicator", rcc_barrier((rcc_comm_t *)request));
    INVALID("is no communicator", rcc_barrier((rcc_comm_t *)(uintptr_t)op));
    copy = (rcc_request_t *)comm;
    INVALID("is no request", rcc_wait(&copy));
    INVALID("is no operator", rcc_op_free((uintptr_t)request));
    /* Freed. */
    copy = request;
    OK(rcc_wait(&request));
    INVALID("the request is not there any more", rcc_wait(&copy));
    INVALID("the request is not there any more", rcc_test(&copy, &done));
    OK(rcc_op_free(op));
    INVALID("the operator is not there any more", rcc_op_free(op));
    INVALID("the operator is not there any more", rcc_all_reduce(comm, &x, &x, 1, RCC_F32, op));
    well(comm);
    OK(rcc_comm_destroy(comm));
    for (int turn = 0; turn < 2; turn++) {
        INVALID("the communicator is not there any more", rcc_barrier(comm));
        INVALID("the communicator is not there any more", rcc_comm_rank(comm, &rank));
        INVALID("the communicator is not there any more", rcc_comm_failure(comm));
        INVALID("the communicator is not there any more", rcc_comm_destroy(comm));
        /* Another in its place is another. */
        again = alone();
        CHECK(again != comm);
        well(again);
    }
}

static void memory(rcc_comm_t *comm) {
    rcc_comm_t *other = alone();
    void *first, *second;
    char own;
    REFUSED(RCC_ERROR_RESOURCE, "are free", rcc_alloc(comm, 2 << 20, &first));
    CHECK(first == NULL);
    REFUSED(RCC_ERROR_RESOURCE, "are free", rcc_alloc(comm, SIZE_MAX, &first));
    OK(rcc_alloc(comm, 0, &first));
    OK(rcc_alloc(comm, 1000, &second));
    CHECK(first != NULL && second != NULL && first != second);
    INVALID("is no memory that rcc_alloc gave", rcc_free(comm, &own));
    INVALID("is no memory that rcc_alloc gave", rcc_free(comm, (char *)second + 1));
    INVALID("is no memory that rcc_alloc gave", rcc_free(other, second));
    OK(rcc_free(comm, second));
    INVALID("is no memory that rcc_alloc gave", rcc_free(comm, second));
    OK(rcc_free(comm, first));
    OK(rcc_alloc(comm, 1 << 20, &first));
    /* What is not freed goes with the communicator. */
    OK(rcc_alloc(other, 4096, &second));
    OK(rcc_comm_destroy(other));
    OK(rcc_free(comm, first));
}

static void programs(rcc_comm_t *comm) {
    rcc_source_t source = RCC_SOURCE_INIT;
    rcc_algorithm_t algorithm, foreign;
    rcc_comm_t *other = alone();
    rcc_param_t param = {"unknown", "1"};
    float x[2] = {1, 2};
    const char *name;
    INVALID("no file, no text and no algorithm", rcc_compile(comm, &source, &algorithm));
    source.file = "/nowhere/a.coll";
    INVALID("/nowhere/a.coll cannot be read", rcc_compile(comm, &source, &algorithm));
    source.file = "wrong.coll";
    source.text = "algorithm wrong on ranks[n] implements allreduce {\n    data @ 0 = nothing @ 0\n}\n";
    INVALID("wrong.coll:2", rcc_compile(comm, &source, &algorithm));
    source.text = "not even a program";
    INVALID("wrong.coll:1", rcc_compile(comm, &source, &algorithm));
    source.text = "\xff\xfe";
    INVALID("`source.text` is not text", rcc_compile(comm, &source, &algorithm));
    source.file = source.text = NULL;
    source.algorithm = "std::allreduce::nothing";
    INVALID("there is no algorithm", rcc_compile(comm, &source, &algorithm));
    source.algorithm = "copy";
    source.file = "own.coll";
    source.text = "collective moved on ranks[n] {\n    in x\n    out y\n    ensures for r in 0..n: y @ r == x @ r\n}\n"
                  "algorithm copy on ranks[n] implements moved {\n    for r in 0..n {\n        y @ r = x @ r\n    }\n}\n"
                  "algorithm other on ranks[n] implements moved {\n    for r in 0..n {\n        y @ r = x @ r\n    }\n}\n";
    source.params = &param;
    INVALID("`source.params` cannot have", (source.param_count = SIZE_MAX, rcc_compile(comm, &source, &algorithm)));
    source.param_count = 1;
    INVALID("unknown", rcc_compile(comm, &source, &algorithm));
    source.param_count = 0;
    OK(rcc_compile(comm, &source, &algorithm));
    OK(rcc_algorithm_name(comm, algorithm, &name));
    CHECK(strcmp(name, "copy") == 0);
    source.algorithm = NULL;
    INVALID("has 2 algorithms", rcc_compile(comm, &source, &foreign));
    INVALID("/nowhere/a.plan", rcc_load(comm, "/nowhere/a.plan", &foreign));
    INVALID("/dev/null", rcc_load(comm, "/dev/null", &foreign));

    source.algorithm = "copy";
    OK(rcc_compile(other, &source, &foreign));
    CHECK(foreign != algorithm);
    rcc_buffer_t good[] = {{"x", &x[0], NULL, 1}, {"y", NULL, &x[1], 1}};
    rcc_buffer_t bad[] = {{"z", &x[0], NULL, 1}, {"y", &x[0], NULL, 1}, {"x", NULL, NULL, 1}, {NULL, x, x, 1}};
    OK(rcc_run(comm, algorithm, RCC_F32, RCC_SUM, good, 2));
    CHECK(x[1] == 1);
    good[0].count = good[1].count = 0;
    OK(rcc_run(comm, algorithm, RCC_F32, RCC_SUM, good, 2));
    good[0].count = good[1].count = 1;
    INVALID("is no algorithm of this communicator", rcc_run(comm, foreign, RCC_F32, RCC_SUM, good, 2));
    INVALID("is no algorithm of this communicator", rcc_run(comm, algorithm + 7, RCC_F32, RCC_SUM, good, 2));
    INVALID("is no algorithm of this communicator", rcc_algorithm_name(comm, foreign, &name));
    INVALID("reads no buffer `z`", rcc_run(comm, algorithm, RCC_F32, RCC_SUM, &bad[0], 1));
    INVALID("reads no buffer `y`", rcc_run(comm, algorithm, RCC_F32, RCC_SUM, &bad[1], 1));
    INVALID("of the buffer `x` are NULL", rcc_run(comm, algorithm, RCC_F32, RCC_SUM, &bad[2], 1));
    INVALID("`buffer.name` is NULL", rcc_run(comm, algorithm, RCC_F32, RCC_SUM, &bad[3], 1));
    INVALID("`buffers` is NULL", rcc_run(comm, algorithm, RCC_F32, RCC_SUM, NULL, 2));
    INVALID("at least one buffer", rcc_run(comm, algorithm, RCC_F32, RCC_SUM, NULL, 0));
    INVALID("must have 4 bytes, and has 0", rcc_run(comm, algorithm, RCC_F32, RCC_SUM, good, 1));
    good[1].count = 2;
    ENDS(RCC_ERROR_INVALID, rcc_run(comm, algorithm, RCC_F32, RCC_SUM, good, 2));
    OK(rcc_comm_destroy(other));
    well(comm);
}

/* Ranks as threads. */
static rcc_comm_t *pair[2];
static rcc_status_t statuses[2];
static char texts[2][4096];

static void *differ(void *which) {
    size_t at = (size_t)(uintptr_t)which;
    static float data[2][2000];
    statuses[at] = rcc_all_reduce(pair[at], data[at], data[at], at == 0 ? 1000 : 2000, RCC_F32, RCC_SUM);
    snprintf(texts[at], sizeof texts[at], "%s", rcc_last_error());
    return NULL;
}

static void *barrier(void *which) {
    size_t at = (size_t)(uintptr_t)which;
    do {
        statuses[at] = rcc_barrier(pair[at]); /* Refused while the other thread looks whether this one is inside. */
    } while (statuses[at] == RCC_ERROR_INVALID);
    snprintf(texts[at], sizeof texts[at], "%s", rcc_last_error());
    return NULL;
}

/* Combines, the first time, so slowly that others take it for stuck. */
static void slowly(void *into, const void *other, size_t count, rcc_dtype_t dtype, void *context) {
    (void)into, (void)other, (void)count, (void)dtype;
    sleep_ms(*(long *)context);
    *(long *)context = 0;
}

static rcc_op_t slow[2];

static void *stall(void *which) {
    size_t at = (size_t)(uintptr_t)which;
    static float data[2][200000];
    statuses[at] = rcc_all_reduce(pair[at], data[at], data[at], 200000, RCC_F32, slow[at]);
    snprintf(texts[at], sizeof texts[at], "%s", rcc_last_error());
    return NULL;
}

static void both(void *(*work)(void *)) {
    pthread_t threads[2];
    for (uintptr_t at = 0; at < 2; at++) {
        CHECK(pthread_create(&threads[at], NULL, work, (void *)at) == 0);
    }
    for (int at = 0; at < 2; at++) {
        CHECK(pthread_join(threads[at], NULL) == 0);
    }
}

static void make_pair(const rcc_options_t *options) {
    OK(rcc_comm_threads(2, options, pair));
    CHECK(pair[0] != NULL && pair[1] != NULL);
}

static void end_pair(void) {
    OK(rcc_comm_destroy(pair[0]));
    OK(rcc_comm_destroy(pair[1]));
}

static void mismatch(void) {
    make_pair(NULL);
    both(differ);
    for (int at = 0; at < 2; at++) {
        CHECK(statuses[at] == RCC_ERROR_MISMATCH);
        CHECK(strstr(texts[at], "1000") != NULL && strstr(texts[at], "2000") != NULL);
        ENDS(RCC_ERROR_MISMATCH, rcc_comm_failure(pair[at]));
        ENDS(RCC_ERROR_MISMATCH, rcc_barrier(pair[at]));
    }
    end_pair();
}

static void late(void) {
    rcc_options_t options = RCC_OPTIONS_INIT;
    uint32_t ranks[2] = {9, 9};
    options.late_ms = 200;
    make_pair(&options);
    ENDS(RCC_ERROR_LATE, rcc_barrier(pair[0]));
    CHECK(rcc_last_error_ranks(ranks, 2) == 1 && ranks[0] == 1 && ranks[1] == 9);
    ENDS(RCC_ERROR_LATE, rcc_barrier(pair[1]));
    end_pair();
}

/* One thread at a time; but for those functions that go at any time. */
static void busy_then_aborted(void) {
    pthread_t thread;
    uint32_t rank;
    rcc_status_t status;
    make_pair(NULL);
    CHECK(pthread_create(&thread, NULL, barrier, (void *)0) == 0);
    do {
        sleep_ms(1);
        status = rcc_free(pair[0], NULL);
    } while (status == RCC_SUCCESS);
    INVALID("another thread is using the communicator", rcc_barrier(pair[0]));
    INVALID("another thread is using the communicator", rcc_comm_destroy(pair[0]));
    OK(rcc_comm_rank(pair[0], &rank));
    OK(rcc_comm_failure(pair[0]));
    OK(rcc_comm_abort(pair[0], "for a test"));
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(statuses[0] == RCC_ERROR_ABORTED && strstr(texts[0], "for a test") != NULL);
    for (int at = 0; at < 2; at++) {
        REFUSED(RCC_ERROR_ABORTED, "for a test", rcc_barrier(pair[at]));
        REFUSED(RCC_ERROR_ABORTED, "for a test", rcc_comm_failure(pair[at]));
    }
    /* Once is enough, and another reason changes nothing. */
    OK(rcc_comm_abort(pair[1], NULL));
    REFUSED(RCC_ERROR_ABORTED, "for a test", rcc_comm_failure(pair[1]));
    end_pair();
}

/* Ranks as threads do not go together in one group; that is said before anything is waited for. */
static void grouped(void) {
    enum { COUNT = 20000 };
    rcc_options_t options = RCC_OPTIONS_INIT;
    static float data[2][COUNT];
    rcc_call_t calls[2] = {RCC_CALL_INIT, RCC_CALL_INIT};
    const rcc_call_t *group[2] = {&calls[0], &calls[1]};
    options.late_ms = 1000;
    make_pair(&options);
    for (int at = 0; at < 2; at++) {
        calls[at].comm = pair[at];
        calls[at].send = calls[at].recv = data[at];
        calls[at].count = COUNT;
    }
    INVALID("must be made of one", rcc_group(group, 2));
    for (int at = 0; at < 2; at++) OK(rcc_comm_failure(pair[at]));
    end_pair();
}

static void left(void) {
    make_pair(NULL);
    OK(rcc_comm_destroy(pair[1]));
    ENDS(RCC_ERROR_PEER_DIED, rcc_barrier(pair[0]));
    OK(rcc_comm_destroy(pair[0]));
}

static void stalled(void) {
    rcc_options_t options = RCC_OPTIONS_INIT;
    long ms[2] = {0, 1500};
    options.stalled_ms = 150;
    make_pair(&options);
    for (int at = 0; at < 2; at++) {
        OK(rcc_op_create("slow", RCC_F32, slowly, &ms[at], &slow[at]));
    }
    both(stall);
    CHECK(statuses[0] == RCC_ERROR_STALLED);
    ENDS(RCC_ERROR_STALLED, rcc_barrier(pair[1]));
    for (int at = 0; at < 2; at++) {
        OK(rcc_op_free(slow[at]));
    }
    end_pair();
}

/* What is done at each signal, before or after. */
static void signals(struct sigaction *actions, sigset_t *blocked) {
    for (int signal = 1; signal < SIGNALS; signal++) {
        sigaction(signal, NULL, &actions[signal]);
    }
    pthread_sigmask(SIG_SETMASK, NULL, blocked);
}

int main(void) {
    static struct sigaction before[SIGNALS], after[SIGNALS];
    sigset_t blocked_before, blocked_after;
    rcc_comm_t *comm;
    signals(before, &blocked_before);
    CHECK(strcmp(rcc_last_error(), "") == 0);
    comm = alone();
    nothing_given(comm);
    wrong_numbers(comm);
    structures();
    handles();
    memory(comm);
    programs(comm);
    OK(rcc_comm_destroy(comm));
    mismatch();
    late();
    busy_then_aborted();
    grouped();
    left();
    stalled();
    signals(after, &blocked_after);
    for (int signal = 1; signal < SIGNALS; signal++) {
        CHECK(before[signal].sa_handler == after[signal].sa_handler);
        CHECK(sigismember(&blocked_before, signal) == sigismember(&blocked_after, signal));
    }
    puts("all was told");
    return 0;
}
