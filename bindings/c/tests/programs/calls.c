/* Calls under way, groups, communicators of communicators, operators and algorithms of one's own, threads.
 *
 * The argument is a plan file of std::allreduce::ring for as many ranks. */

#define _POSIX_C_SOURCE 200809L

#include "check.h"

#include <pthread.h>

enum { MANY = 30000, REGISTERED = 1 << 20 };

static rcc_comm_t *comm;
static uint32_t rank, size;

static void *room(size_t bytes) {
    void *memory = calloc(1, bytes);
    CHECK(memory != NULL);
    return memory;
}

static uint64_t ranks_sum(uint32_t n) {
    return (uint64_t)n * (n - 1) / 2;
}

/* Several at once, small and large, waited for in another order than they were started in, with calls between. */
static void under_way(void) {
    enum { CALLS = 7 };
    rcc_request_t *requests[CALLS];
    uint64_t *data[CALLS];
    for (size_t k = 0; k < CALLS; k++) {
        size_t count = k % 2 == 0 ? MANY : k + 1;
        data[k] = room(count * 8);
        for (size_t i = 0; i < count; i++) data[k][i] = rank + i * k;
        OK(rcc_all_reduce_start(comm, data[k], data[k], count, RCC_U64, RCC_SUM, &requests[k]));
        CHECK(requests[k] != NULL);
    }
    OK(rcc_barrier(comm));
    OK(rcc_wait(&requests[3]));
    int done = 0;
    while (!done) OK(rcc_test(&requests[4], &done));
    uint32_t one = 1, all = 0;
    OK(rcc_all_reduce(comm, &one, &all, 1, RCC_U32, RCC_SUM));
    CHECK(all == size);
    OK(rcc_wait_all(requests, CALLS));
    for (size_t k = 0; k < CALLS; k++) {
        size_t count = k % 2 == 0 ? MANY : k + 1;
        for (size_t i = 0; i < count; i++) CHECK(data[k][i] == ranks_sum(size) + size * i * k);
        CHECK(requests[k] == NULL);
        free(data[k]);
    }
}

/* A request outlives its communicator, which waits for it; and memory of rcc_alloc a call that has it. */
static void ends(void) {
    rcc_comm_t *copy;
    rcc_request_t *request;
    int32_t *data = room(MANY * 4), x = 1;
    void *lent, *other, *again;
    OK(rcc_comm_duplicate(comm, &copy));
    for (size_t i = 0; i < MANY; i++) data[i] = (int32_t)rank;
    OK(rcc_all_reduce_start(copy, data, data, MANY, RCC_I32, RCC_MAX, &request));
    OK(rcc_comm_destroy(copy));
    OK(rcc_wait(&request));
    for (size_t i = 0; i < MANY; i++) CHECK(data[i] == (int32_t)size - 1);
    INVALID("not there any more", rcc_all_reduce(copy, &x, &x, 1, RCC_I32, RCC_SUM));
    free(data);
    OK(rcc_alloc(comm, MANY * 4, &lent));
    memset(lent, 1, MANY * 4);
    OK(rcc_all_reduce_start(comm, lent, lent, MANY, RCC_I32, RCC_MIN, &request));
    OK(rcc_free(comm, lent));
    /* It is the call's: nobody else gets it before that has been waited for. */
    OK(rcc_alloc(comm, MANY * 4, &other));
    CHECK((uintptr_t)other >= (uintptr_t)lent + MANY * 4 || (uintptr_t)lent >= (uintptr_t)other + MANY * 4);
    for (size_t i = 0; i < MANY; i++) CHECK(((int32_t *)other)[i] == 0);
    memset(other, 0x5a, MANY * 4);
    OK(rcc_wait(&request));
    for (size_t i = 0; i < MANY; i++) CHECK(((int32_t *)other)[i] == 0x5a5a5a5a);
    OK(rcc_free(comm, other));
    /* Then all is there again, zeroed, in whatever order it was freed. */
    OK(rcc_alloc(comm, REGISTERED, &again));
    CHECK(again == lent);
    for (size_t i = 0; i < REGISTERED; i++) CHECK(((char *)again)[i] == 0);
    OK(rcc_free(comm, again));
}

static void divided(void) {
    rcc_comm_t *part = (rcc_comm_t *)&rank, *copy;
    uint32_t new_rank, new_size, sum = rank, members = (size + 1 - rank % 2) / 2;
    /* The odd and the even, in reverse order. */
    OK(rcc_comm_split(comm, rank % 2, -(int64_t)rank, &part));
    OK(rcc_comm_rank(part, &new_rank));
    OK(rcc_comm_size(part, &new_size));
    CHECK(new_size == members && new_rank == members - 1 - rank / 2);
    OK(rcc_all_reduce(part, &sum, &sum, 1, RCC_U32, RCC_SUM));
    CHECK(sum == 2 * ranks_sum(members) + members * (rank % 2));
    OK(rcc_comm_destroy(part));
    /* All but the last. */
    OK(rcc_comm_split(comm, rank + 1 == size ? RCC_NO_COLOR : 7, 0, &part));
    CHECK((part == NULL) == (rank + 1 == size));
    OK(rcc_comm_destroy(part));
    OK(rcc_comm_duplicate(comm, &copy));

    /* Calls of both as one. */
    uint64_t *first = room(MANY * 8), *second = room(MANY * 8), bits[2] = {0, 0};
    rcc_call_t calls[3] = {RCC_CALL_INIT, RCC_CALL_INIT, RCC_CALL_INIT};
    const rcc_call_t *group[3] = {&calls[0], &calls[1], &calls[2]};
    for (size_t i = 0; i < MANY; i++) first[i] = second[i] = rank + i;
    for (size_t k = 0; k < 3; k++) {
        calls[k].comm = k == 1 ? copy : comm;
        calls[k].dtype = RCC_U64;
        calls[k].send = calls[k].recv = k == 0 ? first : second;
        calls[k].count = MANY;
    }
    calls[2].collective = RCC_BROADCAST;
    calls[2].root = size - 1;
    calls[2].send = NULL;
    calls[2].recv = bits;
    calls[2].count = 2;
    bits[1] = rank;
    OK(rcc_group(group, 3));
    for (size_t i = 0; i < MANY; i++) CHECK(first[i] == ranks_sum(size) + size * i && second[i] == first[i]);
    CHECK(bits[1] == size - 1);
    /* If one makes no sense none is started. */
    calls[2].count = 0;
    calls[1].recv = NULL;
    INVALID("`recv` is NULL", rcc_group(group, 3));
    calls[1].recv = second + 1;
    INVALID("do not lie to each other", rcc_group(group, 3));
    calls[1].size = 3;
    INVALID("`calls[1].size` is 3", rcc_group(group, 3));
    group[2] = NULL;
    calls[1] = calls[0];
    INVALID("`calls[2]` is NULL", rcc_group(group, 3));
    CHECK(first[1] == ranks_sum(size) + size);
    OK(rcc_comm_destroy(copy));
    free(first);
    free(second);
}

struct seen {
    rcc_dtype_t dtype;
    size_t elements;
};

/* into = into XOR other, and looks at what it is given. */
static void exclusive_or(void *into, const void *other, size_t count, rcc_dtype_t dtype, void *context) {
    struct seen *seen = context;
    uint32_t *to = into;
    const uint32_t *from = other;
    CHECK(dtype == RCC_U32 && (uintptr_t)into % 64 == 0 && (uintptr_t)other % 64 == 0);
    seen->dtype = dtype;
    seen->elements += count;
    for (size_t i = 0; i < count; i++) to[i] ^= from[i];
}

static uint32_t pattern(uint32_t of, size_t i) {
    return (uint32_t)(i * 2654435761u) ^ (of + 1) * 0x9e3779b9u;
}

static void own_operator(void) {
    struct seen seen = {RCC_F32, 0};
    rcc_op_t op, other;
    rcc_request_t *request;
    rcc_comm_t *copy;
    uint32_t *in = room(MANY * size * 4), *out = room(MANY * size * 4);
    const char *const long_name = "0123456789012345678901234567890123456789012345678901234567890123456789";
    INVALID("cannot be the name", rcc_op_create("", RCC_U32, exclusive_or, &seen, &op));
    INVALID("cannot be the name", rcc_op_create("a\n", RCC_U32, exclusive_or, &seen, &op));
    INVALID("cannot be the name", rcc_op_create(long_name, RCC_U32, exclusive_or, &seen, &op));
    OK(rcc_op_create("xor", RCC_U32, exclusive_or, &seen, &op));
    for (size_t i = 0; i < MANY * size; i++) in[i] = pattern(rank, i);
    static const size_t counts[] = {3, MANY};
    for (int turn = 0; turn < 8; turn++) {
        size_t count = counts[turn % 2], at = 0;
        switch (turn / 2) {
        case 0: OK(rcc_all_reduce(comm, in, out, count, RCC_U32, op)); break;
        case 1:
            OK(rcc_all_reduce_start(comm, in, out, count, RCC_U32, op, &request));
            OK(rcc_wait(&request));
            break;
        case 2:
            OK(rcc_reduce_scatter(comm, in, out, count, RCC_U32, op));
            at = rank * count;
            break;
        default: OK(rcc_reduce(comm, in, out, count, RCC_U32, op, 0));
        }
        for (size_t i = 0; (turn < 6 || rank == 0) && i < count; i++) {
            uint32_t due = 0;
            for (uint32_t r = 0; r < size; r++) due ^= pattern(r, at + i);
            CHECK(out[i] == due);
        }
    }
    CHECK(seen.dtype == RCC_U32 && seen.elements > 0);
    INVALID("the operator `xor` combines u32, and the call is of f32", rcc_all_reduce(comm, in, out, 3, RCC_F32, op));
    OK(rcc_comm_duplicate(comm, &copy));
    OK(rcc_op_create(rank == 0 ? "and" : "or", RCC_U32, exclusive_or, &seen, &other));
    ENDS(RCC_ERROR_MISMATCH, rcc_all_reduce(copy, in, out, MANY, RCC_U32, other));
    CHECK(strstr(rcc_last_error(), "and") != NULL && strstr(rcc_last_error(), "or") != NULL);
    OK(rcc_comm_destroy(copy));
    OK(rcc_op_free(other));
    OK(rcc_op_free(op));
    OK(rcc_barrier(comm));
    free(in);
    free(out);
}

static void own_algorithm(const char *plan) {
    /* Every rank gets what the rank `by` places before it has. */
    static const char *const text = "collective turned(by: int) on ranks[n] {\n"
                                    "    in x\n"
                                    "    out y\n"
                                    "    ensures for r in 0..n: y @ (r + by) % n == x @ r\n"
                                    "}\n"
                                    "algorithm turn(by: int) on ranks[n] implements turned(by) {\n"
                                    "    for r in 0..n {\n"
                                    "        y @ (r + by) % n = x @ r\n"
                                    "    }\n"
                                    "}\n";
    rcc_param_t params[] = {{"by", "1"}};
    rcc_source_t source = RCC_SOURCE_INIT;
    rcc_algorithm_t turn, ring, loaded;
    rcc_request_t *request;
    const char *name;
    int16_t *x = room(MANY * 2), *y = room(MANY * 2);
    double *sum = room(MANY * 8);
    uint32_t shape[] = {size};
    source.file = "turn.coll";
    source.text = text;
    source.params = params;
    source.param_count = 1;
    source.shape = shape;
    source.shape_count = 1;
    source.bytes = 4096;
    OK(rcc_compile(comm, &source, &turn));
    for (size_t i = 0; i < MANY; i++) x[i] = (int16_t)(i * 3 + rank);
    rcc_buffer_t buffers[] = {{"x", x, NULL, MANY}, {"y", NULL, y, MANY}};
    for (int way = 0; way < 2; way++) {
        memset(y, 0, MANY * 2);
        if (way == 0) {
            OK(rcc_run(comm, turn, RCC_F16, RCC_SUM, buffers, 2));
        } else {
            OK(rcc_run_start(comm, turn, RCC_F16, RCC_SUM, buffers, 2, &request));
            OK(rcc_wait(&request));
        }
        for (size_t i = 0; i < MANY; i++) CHECK(y[i] == (int16_t)(i * 3 + (rank + size - 1) % size));
    }
    source.shape_count = 0;
    source.param_count = 0;
    source.file = source.text = NULL;
    source.algorithm = "std::allreduce::ring";
    OK(rcc_compile(comm, &source, &ring));
    OK(rcc_load(comm, plan, &loaded));
    OK(rcc_algorithm_name(comm, loaded, &name));
    CHECK(strstr(name, "ring") != NULL);
    for (int in_place = 0; in_place < 2; in_place++) {
        double *result = in_place ? sum : room(MANY * 8);
        rcc_buffer_t data = {"data", sum, result, MANY};
        for (size_t i = 0; i < MANY; i++) sum[i] = (double)(rank + i);
        OK(rcc_run(comm, in_place ? ring : loaded, RCC_F64, RCC_SUM, &data, 1));
        for (size_t i = 0; i < MANY; i++) CHECK(result[i] == (double)(ranks_sum(size) + size * i));
        if (!in_place) free(result);
    }
    /* What a standard call would run, by its names. */
    rcc_call_t call = RCC_CALL_INIT;
    rcc_algorithm_t selected, again;
    call.comm = comm;
    call.dtype = RCC_F64;
    call.send = call.recv = sum;
    call.count = MANY;
    OK(rcc_select(&call, &selected));
    OK(rcc_select(&call, &again));
    OK(rcc_algorithm_name(comm, selected, &name));
    CHECK(selected == again && strlen(name) > 0);
    rcc_buffer_t data = {"data", sum, sum, MANY};
    for (size_t i = 0; i < MANY; i++) sum[i] = (double)(rank + i);
    OK(rcc_run(comm, selected, RCC_F64, RCC_SUM, &data, 1));
    for (size_t i = 0; i < MANY; i++) CHECK(sum[i] == (double)(ranks_sum(size) + size * i));
    call.recv = NULL;
    INVALID("`recv` is NULL", rcc_select(&call, &selected));
    CHECK(selected == 0);
    INVALID("`call` is NULL", rcc_select(NULL, &selected));
    INVALID("`algorithm` is NULL", rcc_select(&call, NULL));
    free(x);
    free(y);
    free(sum);
}

/* What rank r has in element i of block b. */
static uint32_t item(uint32_t r, size_t b, size_t i) {
    return (uint32_t)(r * 1000003 + b * 7001 + i);
}

enum { IN_PLACE, OUT_OF_PLACE };

/* One call of an algorithm with a root, in memory that peers reach into. What only the root has the others name at the address of what
 * they have if it is in place, and else leave out. */
static void rooted(rcc_collective_t collective, rcc_algorithm_t algorithm, uint32_t *memory, size_t count, uint32_t root,
                   int form) {
    int is_root = rank == root, scatters = collective == RCC_SCATTER;
    size_t blocks = collective == RCC_REDUCE ? 1 : size, own = collective == RCC_REDUCE || !is_root ? 0 : rank * count;
    uint32_t *all = memory, *one = form == OUT_OF_PLACE ? memory + size * count : memory + own;
    rcc_buffer_t input = {"input", scatters ? all : one, NULL, scatters ? blocks * count : count};
    rcc_buffer_t output = {"output", NULL, scatters ? one : all, scatters ? count : blocks * count};
    rcc_buffer_t buffers[2] = {input, output};
    memset(memory, 0, 2 * size * count * 4);
    for (size_t i = 0; i < (scatters && is_root ? blocks * count : scatters ? 0 : count); i++) {
        ((uint32_t *)(scatters ? all : one))[i] = scatters ? item(rank, i / count, i % count) : item(rank, 0, i);
    }
    if (is_root || form == IN_PLACE) {
        OK(rcc_run(comm, algorithm, RCC_U32, RCC_SUM, buffers, 2));
    } else {
        OK(rcc_run(comm, algorithm, RCC_U32, RCC_SUM, scatters ? &buffers[1] : &buffers[0], 1));
    }
    for (size_t i = 0; scatters && i < count; i++) CHECK(one[i] == item(root, rank, i));
    for (size_t i = 0; collective == RCC_GATHER && is_root && i < size * count; i++) {
        CHECK(all[i] == item((uint32_t)(i / count), 0, i % count));
    }
    for (size_t i = 0; collective == RCC_REDUCE && is_root && i < count; i++) {
        CHECK(all[i] == (uint32_t)(ranks_sum(size) * 1000003 + size * i));
    }
}

static void rooted_in_place(void) {
    static const rcc_collective_t collectives[] = {RCC_REDUCE, RCC_GATHER, RCC_SCATTER};
    static const char *const names[] = {"std::reduce::direct", "std::gather::direct", "std::scatter::direct"};
    char number[16];
    uint32_t root = size - 1;
    rcc_param_t param = {"root", number};
    void *memory;
    snprintf(number, sizeof number, "%u", (unsigned)root);
    OK(rcc_alloc(comm, 2 * size * MANY * 4, &memory));
    for (int at = 0; at < 3; at++) {
        rcc_call_t call = RCC_CALL_INIT;
        rcc_source_t source = RCC_SOURCE_INIT;
        rcc_algorithm_t selected, compiled;
        size_t own = at == 0 || rank != root ? 0 : rank * (size_t)MANY;
        call.comm = comm;
        call.collective = collectives[at];
        call.dtype = RCC_U32;
        call.send = (uint32_t *)memory + (at == 1 ? own : 0);
        call.recv = (uint32_t *)memory + (at == 2 ? own : 0);
        call.count = MANY;
        call.root = root;
        OK(rcc_select(&call, &selected));
        rooted(collectives[at], selected, memory, MANY, root, IN_PLACE);
        /* Of nothing, which lies anywhere. */
        rooted(collectives[at], selected, memory, 0, root, IN_PLACE);
        rooted(collectives[at], selected, memory, 0, root, OUT_OF_PLACE);
        source.algorithm = names[at];
        source.params = &param;
        source.param_count = 1;
        source.registered = 1;
        OK(rcc_compile(comm, &source, &compiled));
        rooted(collectives[at], compiled, memory, MANY, root, IN_PLACE);
        rooted(collectives[at], compiled, memory, MANY, root, OUT_OF_PLACE);
        rooted(collectives[at], compiled, memory, 0, root, OUT_OF_PLACE);
    }
    OK(rcc_barrier(comm));
    OK(rcc_free(comm, memory));
}

enum { LARGE = 1000000 };

static void *other_rank(void *which) {
    rcc_comm_t *own = which;
    float *data = room(LARGE * 4);
    OK(rcc_all_reduce(own, data, data, LARGE, RCC_F32, RCC_SUM));
    CHECK(data[LARGE - 1] == 1);
    free(data);
    return NULL;
}

/* A thread drives what this rank has started, while it waits for something else: for the other rank, which waits for it. */
static void driven(void) {
    rcc_options_t options = RCC_OPTIONS_INIT;
    rcc_request_t *request;
    rcc_comm_t *comms[2];
    pthread_t other;
    float *data = room(LARGE * 4);
    options.progress = 1;
    options.late_ms = options.stalled_ms = 20000;
    OK(rcc_comm_threads(2, &options, comms));
    for (size_t i = 0; i < LARGE; i++) data[i] = 1;
    CHECK(pthread_create(&other, NULL, other_rank, comms[1]) == 0);
    OK(rcc_all_reduce_start(comms[0], data, data, LARGE, RCC_F32, RCC_SUM, &request));
    CHECK(pthread_join(other, NULL) == 0);
    OK(rcc_wait(&request));
    CHECK(data[0] == 1);
    OK(rcc_comm_destroy(comms[0]));
    OK(rcc_comm_destroy(comms[1]));
    free(data);
}

static void *loop(void *which) {
    rcc_comm_t *own = which;
    float *data = room(MANY * 4);
    for (int turn = 0; turn < 50; turn++) {
        size_t count = turn % 5 == 0 ? MANY : 10;
        for (size_t i = 0; i < count; i++) data[i] = (float)turn;
        OK(rcc_all_reduce(own, data, data, count, RCC_F32, RCC_SUM));
        CHECK(data[count - 1] == (float)turn * (float)size);
    }
    free(data);
    return NULL;
}

static void threads(void) {
    pthread_t others[2];
    rcc_comm_t *copies[2];
    for (int at = 0; at < 2; at++) OK(rcc_comm_duplicate(comm, &copies[at]));
    for (int at = 0; at < 2; at++) CHECK(pthread_create(&others[at], NULL, loop, copies[at]) == 0);
    loop(comm);
    for (int at = 0; at < 2; at++) {
        CHECK(pthread_join(others[at], NULL) == 0);
        OK(rcc_comm_destroy(copies[at]));
    }
}

int main(int argc, char **argv) {
    rcc_options_t options = RCC_OPTIONS_INIT;
    CHECK(argc == 2);
    options.registered = REGISTERED;
    options.in_flight = 2;
    OK(rcc_comm_from_env(&options, &comm));
    OK(rcc_comm_rank(comm, &rank));
    OK(rcc_comm_size(comm, &size));
    CHECK(size > 1);
    under_way();
    ends();
    divided();
    own_operator();
    own_algorithm(argv[1]);
    rooted_in_place();
    driven();
    threads();
    OK(rcc_comm_destroy(comm));
    printf("right at rank %u\n", (unsigned)rank);
    return 0;
}
