/* All collectives, of all types, in all forms and ways to be called, compared with what they promise, computed here.
 *
 * Values are small whole numbers, which every type holds, so that results are exact whatever the order they are combined in. */

#include "check.h"

#include <math.h>

static rcc_comm_t *comm;
static uint32_t rank, size;

/* The bits of exponent and mantissa of a float, or 0 for an integer. */
struct kind {
    int exponent, mantissa;
};

static struct kind kind_of(rcc_dtype_t dtype) {
    switch (dtype) {
    case RCC_F32: return (struct kind){8, 23};
    case RCC_F64: return (struct kind){11, 52};
    case RCC_F16: return (struct kind){5, 10};
    case RCC_BF16: return (struct kind){8, 7};
    case RCC_F8E4M3: return (struct kind){4, 3};
    case RCC_F8E5M2: return (struct kind){5, 2};
    default: return (struct kind){0, 0};
    }
}

/* Whole numbers from 0 on as elements; bytes in the machine's order, which is little-endian. */
static void put(rcc_dtype_t dtype, void *buffer, size_t at, uint64_t value) {
    struct kind kind = kind_of(dtype);
    size_t bytes = rcc_dtype_size(dtype);
    if (kind.exponent > 0 && value > 0) {
        int exponent;
        double fraction = 2 * frexp((double)value, &exponent); /* 1 to 2 */
        uint64_t bias = (UINT64_C(1) << (kind.exponent - 1)) - 1;
        value = ((uint64_t)(exponent - 1) + bias) << kind.mantissa;
        value |= (uint64_t)((fraction - 1) * (double)(UINT64_C(1) << kind.mantissa));
    }
    memcpy((char *)buffer + at * bytes, &value, bytes);
}

static uint64_t get(rcc_dtype_t dtype, const void *buffer, size_t at) {
    struct kind kind = kind_of(dtype);
    size_t bytes = rcc_dtype_size(dtype);
    uint64_t bits = 0;
    memcpy(&bits, (const char *)buffer + at * bytes, bytes);
    if (kind.exponent == 0 || bits == 0) {
        return bits;
    }
    uint64_t one = UINT64_C(1) << kind.mantissa;
    int exponent = (int)(bits >> kind.mantissa) - ((1 << (kind.exponent - 1)) - 1);
    double value = ldexp(1.0 + (double)(bits & (one - 1)) / (double)one, exponent);
    return value == floor(value) ? (uint64_t)value : UINT64_MAX;
}

/* What rank r has at first in element i of its send buffer: 0, 1 or 2. */
static uint64_t first(uint32_t r, size_t i) {
    return (i * 7 + r * 5 + i / 11) % 3;
}

static uint64_t combined(rcc_op_t op, size_t i) {
    uint64_t value = first(0, i);
    for (uint32_t r = 1; r < size; r++) {
        uint64_t other = first(r, i);
        switch (op) {
        case RCC_SUM: value += other; break;
        case RCC_PROD: value *= other; break;
        case RCC_MIN: value = other < value ? other : value; break;
        default: value = other > value ? other : value; break;
        }
    }
    return value;
}

/* What a collective promises in element i of this rank's receive buffer. */
static uint64_t promised(rcc_collective_t collective, rcc_op_t op, size_t count, uint32_t root, size_t i) {
    uint32_t block = (uint32_t)(i / count);
    size_t within = i % count;
    switch (collective) {
    case RCC_ALL_REDUCE:
    case RCC_REDUCE: return combined(op, i);
    case RCC_REDUCE_SCATTER: return combined(op, rank * count + i);
    case RCC_ALL_GATHER:
    case RCC_GATHER: return first(block, within);
    case RCC_ALL_TO_ALL: return first(block, rank * count + within);
    case RCC_BROADCAST: return first(root, i);
    default: return first(root, rank * count + i);
    }
}

enum way { BLOCKING, STRUCTURE, STARTED, TESTED, WAYS };

static void call(rcc_collective_t collective, const void *send, void *recv, size_t count, rcc_dtype_t dtype,
                 rcc_op_t op, uint32_t root, enum way way) {
    rcc_request_t *request = NULL;
    rcc_call_t one = RCC_CALL_INIT;
    one.comm = comm;
    one.collective = collective;
    one.dtype = dtype;
    one.op = op;
    one.send = send;
    one.recv = recv;
    one.count = count;
    one.root = root;
    if (way == STRUCTURE) {
        OK(rcc_call(&one));
        return;
    }
    if (way == TESTED) {
        int done = 0;
        OK(rcc_start(&one, &request));
        CHECK(request != NULL);
        while (!done) {
            OK(rcc_test(&request, &done));
            CHECK(done == (request == NULL));
        }
        return;
    }
    switch (collective) {
    case RCC_ALL_REDUCE:
        if (way == BLOCKING) OK(rcc_all_reduce(comm, send, recv, count, dtype, op));
        else OK(rcc_all_reduce_start(comm, send, recv, count, dtype, op, &request));
        break;
    case RCC_ALL_GATHER:
        if (way == BLOCKING) OK(rcc_all_gather(comm, send, recv, count, dtype));
        else OK(rcc_all_gather_start(comm, send, recv, count, dtype, &request));
        break;
    case RCC_REDUCE_SCATTER:
        if (way == BLOCKING) OK(rcc_reduce_scatter(comm, send, recv, count, dtype, op));
        else OK(rcc_reduce_scatter_start(comm, send, recv, count, dtype, op, &request));
        break;
    case RCC_ALL_TO_ALL:
        if (way == BLOCKING) OK(rcc_all_to_all(comm, send, recv, count, dtype));
        else OK(rcc_all_to_all_start(comm, send, recv, count, dtype, &request));
        break;
    case RCC_BROADCAST:
        if (way == BLOCKING) OK(rcc_broadcast(comm, recv, count, dtype, root));
        else OK(rcc_broadcast_start(comm, recv, count, dtype, root, &request));
        break;
    case RCC_REDUCE:
        if (way == BLOCKING) OK(rcc_reduce(comm, send, recv, count, dtype, op, root));
        else OK(rcc_reduce_start(comm, send, recv, count, dtype, op, root, &request));
        break;
    case RCC_GATHER:
        if (way == BLOCKING) OK(rcc_gather(comm, send, recv, count, dtype, root));
        else OK(rcc_gather_start(comm, send, recv, count, dtype, root, &request));
        break;
    default:
        if (way == BLOCKING) OK(rcc_scatter(comm, send, recv, count, dtype, root));
        else OK(rcc_scatter_start(comm, send, recv, count, dtype, root, &request));
        break;
    }
    CHECK((request != NULL) == (way == STARTED));
    OK(rcc_wait(&request));
    CHECK(request == NULL);
}

static const unsigned char mark = 0x5a;

/* One call, of memory of the caller's: `first_half` and `second_half` have room for `size` blocks each. */
/* In place at all ranks, or at the root alone. */
enum { OF_ROOT = 2 };

static void one(rcc_collective_t collective, size_t count, rcc_dtype_t dtype, rcc_op_t op, int in_place,
                enum way way, void *first_half, void *second_half) {
    size_t element = rcc_dtype_size(dtype), block = count * element, all = size * block;
    uint32_t root = size - 1;
    int has_send = 1, has_recv = 1, is_root = rank == root;
    size_t sent = count, received = count;
    switch (collective) {
    case RCC_ALL_GATHER: received = size * count; break;
    case RCC_REDUCE_SCATTER: sent = size * count; break;
    case RCC_ALL_TO_ALL: sent = received = size * count; break;
    case RCC_BROADCAST: has_send = is_root; break;
    case RCC_REDUCE: has_recv = is_root; break;
    case RCC_GATHER: has_recv = is_root; received = size * count; break;
    case RCC_SCATTER: has_send = is_root; sent = size * count; break;
    default: break;
    }
    char *send = first_half, *recv = second_half;
    if (collective == RCC_BROADCAST) {
        send = recv;
    } else if (in_place == OF_ROOT && !is_root) {
        in_place = 0;
    } else if (in_place) {
        /* The smaller one is this rank's block of the larger one; at a rank that has only one, both are the same. */
        recv = send;
        if (has_send && has_recv && received > sent) send += rank * block;
        if (has_send && has_recv && sent > received) recv += rank * block;
    }
    memset(first_half, mark, all);
    memset(second_half, mark, all);
    for (size_t i = 0; has_send && i < sent; i++) {
        put(dtype, send, i, first(rank, i));
    }
    call(collective, send, recv, count, dtype, op, root, way);
    for (size_t i = 0; has_recv && i < received; i++) {
        uint64_t is = get(dtype, recv, i), due = promised(collective, op, count, root, i);
        if (is != due) {
            fprintf(stderr,
                    "rank %u of %u: collective %d, dtype %d, op %d, %zu elements, in place %d, way %d: element %zu is "
                    "%" PRIu64 ", not %" PRIu64 "\n",
                    (unsigned)rank, (unsigned)size, (int)collective, (int)dtype, (int)op, count, in_place, (int)way, i,
                    is, due);
            exit(1);
        }
    }
    /* What is not its own it does not touch. */
    char *rest = second_half;
    for (size_t i = has_recv && !in_place ? received * element : 0; i < all; i++) {
        if (collective != RCC_BROADCAST && (in_place || rest + i >= recv)) {
            CHECK((unsigned char)rest[i] == mark);
        }
    }
    for (size_t i = 0; !in_place && collective != RCC_BROADCAST && has_send && i < sent; i++) {
        CHECK(get(dtype, send, i) == first(rank, i));
    }
}

static void all_of(size_t count, rcc_dtype_t dtype, int all_ways, int registered, void *first_half,
                   void *second_half) {
    static const rcc_op_t ops[] = {RCC_SUM, RCC_PROD, RCC_MIN, RCC_MAX};
    for (int collective = RCC_ALL_REDUCE; collective <= RCC_SCATTER; collective++) {
        int reduces =
            collective == RCC_ALL_REDUCE || collective == RCC_REDUCE_SCATTER || collective == RCC_REDUCE;
        int rooted = collective == RCC_REDUCE || collective == RCC_GATHER || collective == RCC_SCATTER;
        for (int in_place = 0; in_place <= (rooted && !registered ? OF_ROOT : 1); in_place++) {
            if (in_place && (collective == RCC_ALL_TO_ALL || collective == RCC_BROADCAST)) continue;
            for (int op = 0; op < (reduces ? 4 : 1); op++) {
                enum way last = all_ways ? WAYS : STRUCTURE;
                for (enum way way = BLOCKING; way < last; way++) {
                    one(collective, count, dtype, ops[op], in_place, way, first_half, second_half);
                }
            }
        }
    }
}

/* Division, and factors, where they are exact. */
static void scaled(void) {
    double values[3] = {(double)rank, (double)size, 1}, results[3];
    int32_t whole = (int32_t)rank * 2 + 1, sum = 0;
    rcc_op_t twice, odd;
    OK(rcc_all_reduce(comm, values, results, 3, RCC_F64, RCC_AVG));
    CHECK(results[0] == (size - 1) / 2.0 && results[1] == size && results[2] == 1);
    OK(rcc_op_premul_sum(2, &twice));
    OK(rcc_op_premul_sum(0.5, &odd));
    OK(rcc_all_reduce(comm, &whole, &sum, 1, RCC_I32, twice));
    /* Where there is one operand, nothing is combined. */
    CHECK(sum == (size == 1 ? 1 : (int32_t)(2 * size * size)));
    INVALID("factor", rcc_all_reduce(comm, &whole, &sum, 1, RCC_I32, odd));
    OK(rcc_all_reduce(comm, values, results, 3, RCC_F64, odd));
    CHECK(results[1] == (size == 1 ? 1 : size * size / 2.0));
    OK(rcc_op_free(twice));
    OK(rcc_op_free(odd));
}

int main(void) {
    enum { MOST = 20000 };
    rcc_options_t options = RCC_OPTIONS_INIT;
    options.registered = 64 << 20;
    OK(rcc_comm_from_env(&options, &comm));
    OK(rcc_comm_rank(comm, &rank));
    OK(rcc_comm_size(comm, &size));
    CHECK(size <= 4);
    void *halves[2] = {malloc(8 * MOST * size + 8), malloc(8 * MOST * size + 8)}, *lent[2];
    CHECK(halves[0] != NULL && halves[1] != NULL);
    for (int dtype = RCC_F32; dtype <= RCC_U64; dtype++) {
        /* Of small calls, of those that need a plan, and of none. */
        all_of(5, dtype, 1, 0, halves[0], halves[1]);
        all_of(3001, dtype, dtype == RCC_I32, 0, halves[0], halves[1]);
        all_of(1, dtype, 0, 0, halves[0], halves[1]);
    }
    all_of(MOST, RCC_F64, 1, 0, halves[0], halves[1]);
    /* Elements may lie at any address. */
    for (int dtype = RCC_F32; dtype <= RCC_U64; dtype++) {
        if (rcc_dtype_size(dtype) == 1) continue;
        all_of(5, dtype, 0, 0, (char *)halves[0] + 1, (char *)halves[1] + 3);
        all_of(MOST, dtype, 0, 0, (char *)halves[0] + 3, (char *)halves[1] + 1);
    }
    OK(rcc_all_reduce(comm, NULL, NULL, 0, RCC_F32, RCC_SUM));
    OK(rcc_all_to_all(comm, NULL, NULL, 0, RCC_F32));
    for (int half = 0; half < 2; half++) {
        OK(rcc_alloc(comm, 8 * MOST * size, &lent[half]));
        CHECK((uintptr_t)lent[half] % 4096 == 0);
    }
    all_of(5, RCC_F32, 1, 1, lent[0], lent[1]);
    all_of(MOST, RCC_F32, 1, 1, lent[0], lent[1]);
    all_of(MOST, RCC_U8, 0, 1, lent[0], lent[1]);
    scaled();
    OK(rcc_barrier(comm));
    OK(rcc_free(comm, lent[1]));
    OK(rcc_free(comm, lent[0]));
    OK(rcc_comm_destroy(comm));
    free(halves[0]);
    free(halves[1]);
    printf("right at rank %u\n", (unsigned)rank);
    return 0;
}
