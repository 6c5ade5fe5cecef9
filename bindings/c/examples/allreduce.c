/* A C program that embeds rcc: ranks that a launcher has started share out some work, and combine what came of it.
 *
 *     cargo build --release -p rcc-c
 *     cc -std=c11 -Ibindings/c/include bindings/c/examples/allreduce.c \
 *        -Ltarget/release -lrcc -Wl,-rpath,"$PWD/target/release" -o allreduce
 *     rcc launch -n 4 -- ./allreduce
 *     torchrun --nproc-per-node 4 --no-python ./allreduce
 *     mpirun -n 4 ./allreduce
 *
 * RCC_LOG=rcc::select=debug tells which plans were selected, and what for.
 */

#include <stdio.h>
#include <stdlib.h>

#include <rcc.h>

enum { COUNT = 1000000 };

/* An algorithm of one's own. It is proved to do what an allreduce promises before it runs. */
static const char *const ring =
    "algorithm ring on ranks[n] implements allreduce {\n"
    "    chunks n\n"
    "    for c in 0..n, hop in 1..n {\n"
    "        data[c] @ (c + hop + 1) % n += data[c] @ (c + hop) % n\n"
    "    }\n"
    "    for c in 0..n, hop in 0..n-1 {\n"
    "        data[c] @ (c + hop + 1) % n = data[c] @ (c + hop) % n\n"
    "    }\n"
    "}\n";

/* Ends this rank if a call has failed; the others are told that it has left. */
static void check(rcc_status_t status) {
    if (status != RCC_SUCCESS) {
        fprintf(stderr, "%s: %s\n", rcc_status_name(status), rcc_last_error());
        exit(EXIT_FAILURE);
    }
}

static void *buffer(size_t bytes) {
    void *memory = malloc(bytes);
    if (memory == NULL) {
        fputs("out of memory\n", stderr);
        exit(EXIT_FAILURE);
    }
    return memory;
}

static void require(int right, const char *what) {
    if (!right) {
        fprintf(stderr, "%s is wrong\n", what);
        exit(EXIT_FAILURE);
    }
}

int main(void) {
    rcc_comm_t *comm;
    uint32_t rank, size;

    check(rcc_log_to_stderr());
    check(rcc_comm_from_env(NULL, &comm));
    check(rcc_comm_rank(comm, &rank));
    check(rcc_comm_size(comm, &size));

    /* Rank 0 decides, and tells the others. */
    uint64_t steps = rank == 0 ? 100000 : 0;
    check(rcc_broadcast(comm, &steps, 1, RCC_U64, 0));

    /* Pi by the midpoint rule: each rank adds up its part, and all get the sum. */
    double pi = 0, width = 1.0 / (double)steps;
    for (uint64_t i = rank; i < steps; i += size) {
        double x = ((double)i + 0.5) * width;
        pi += 4.0 / (1.0 + x * x) * width;
    }
    check(rcc_all_reduce(comm, &pi, &pi, 1, RCC_F64, RCC_SUM));

    /* A large one, as gradients are averaged, under way while this rank computes something else. */
    float *gradient = buffer(COUNT * sizeof *gradient), *average = buffer(COUNT * sizeof *average);
    int64_t *data = buffer(COUNT * sizeof *data);
    rcc_request_t *request;
    for (int i = 0; i < COUNT; i++) {
        gradient[i] = (float)(i % 100) * (float)(rank + 1);
    }
    check(rcc_all_reduce_start(comm, gradient, average, COUNT, RCC_F32, RCC_AVG, &request));
    for (int i = 0; i < COUNT; i++) {
        data[i] = (int64_t)i * rank;
    }
    check(rcc_wait(&request));
    for (int i = 0; i < COUNT; i++) {
        float off = average[i] - (float)(i % 100) * (float)(size + 1) / 2;
        require(-1e-3f < off && off < 1e-3f, "the average");
    }

    /* The algorithm above, in place. */
    rcc_source_t source = RCC_SOURCE_INIT;
    rcc_algorithm_t algorithm;
    source.text = ring;
    check(rcc_compile(comm, &source, &algorithm));
    rcc_buffer_t both = {"data", data, data, COUNT};
    check(rcc_run(comm, algorithm, RCC_I64, RCC_MAX, &both, 1));
    for (int i = 0; i < COUNT; i++) {
        require(data[i] == (int64_t)i * (size - 1), "the largest");
    }

    /* One that is wrong is refused, with its line, at all ranks; nothing is ended by it. */
    source.text = "algorithm wrong on ranks[n] implements allreduce {\n    data @ 0 += data @ n - 1\n}\n";
    require(size == 1 || rcc_compile(comm, &source, &algorithm) == RCC_ERROR_INVALID, "what is wrong");

    if (rank == 0) {
        printf("pi is %.10f, say %u ranks\n", pi, (unsigned)size);
    }
    check(rcc_barrier(comm));
    check(rcc_comm_destroy(comm));
    free(gradient);
    free(average);
    free(data);
    return EXIT_SUCCESS;
}
