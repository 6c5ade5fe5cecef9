/* collbench: what one cell of the comparison takes with an MPI library.
 *
 * In: COLLECTIVE BYTES BATCH_SECONDS BATCHES MOST_SECONDS, as the ranks of an MPI job. Out, from rank 0: a line
 * `library,VERSION` and two lines
 *
 *     cell,COLLECTIVE,RANKS,BYTES,plain,reused|rewritten,CALLS,MEDIAN_US,LEAST_US,WRONG
 *
 * docs/benchmarks.md says how time is taken; bench/src/collbench measures rcc by the same rules, statement by statement,
 * so what is changed here is changed there. f32, sum, malloc'ed buffers. Every element of a result is compared before and
 * after the timed calls; whatever a call does not write is found, because results are filled with -1 first. */

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL, BROADCAST, COLLECTIVES };

static const char *const names[COLLECTIVES] = {"allreduce", "allgather", "reducescatter", "alltoall", "broadcast"};

enum { MOST_BATCHES = 64, MOST_CALLS = 65536, WARMUP = 3 };

/* The cell. Broadcast has one buffer, which is both. */
static int collective, rank, ranks, root;
static size_t block, input_count, output_count;
static float *input, *output;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

/* Whole numbers, small enough that sums are exact in any order. */
static float value(int of, size_t i) {
    return (float)((((uint32_t)i * 2654435761u) >> 22) ^ ((uint32_t)of * 73u & 1023u));
}

static float expected(size_t i) {
    float sum = 0;
    switch (collective) {
    case ALLREDUCE:
        for (int r = 0; r < ranks; r++) sum += value(r, i);
        return sum;
    case REDUCESCATTER:
        for (int r = 0; r < ranks; r++) sum += value(r, (size_t)rank * block + i);
        return sum;
    case ALLGATHER: return value((int)(i / block), i % block);
    case ALLTOALL: return value((int)(i / block), (size_t)rank * block + i % block);
    default: return value(root, i);
    }
}

static void call(void) {
    int count = (int)block;
    switch (collective) {
    case ALLREDUCE: MPI_Allreduce(input, output, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); break;
    case ALLGATHER: MPI_Allgather(input, count, MPI_FLOAT, output, count, MPI_FLOAT, MPI_COMM_WORLD); break;
    case REDUCESCATTER: MPI_Reduce_scatter_block(input, output, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); break;
    case ALLTOALL: MPI_Alltoall(input, count, MPI_FLOAT, output, count, MPI_FLOAT, MPI_COMM_WORLD); break;
    default: MPI_Bcast(output, count, MPI_FLOAT, root, MPI_COMM_WORLD); break;
    }
}

/* Stores what is there already, so that no other core's cache holds it any more. Sixteen bytes at a time. */
static void rewrite(void) {
    typedef float four __attribute__((vector_size(16)));
    size_t i = 0;
    for (; i + 4 <= input_count; i += 4) *(volatile four *)(input + i) = *(volatile four *)(input + i);
    for (; i < input_count; i++) *(volatile float *)(input + i) = *(volatile float *)(input + i);
}

/* One call from fresh buffers, for broadcast one from every root; how many elements are wrong on all ranks. */
static long wrong(void) {
    long mine = 0, all = 0;
    for (root = 0; root < (collective == BROADCAST ? ranks : 1); root++) {
        for (size_t i = 0; i < output_count; i++) output[i] = -1;
        if (collective != BROADCAST || rank == root)
            for (size_t i = 0; i < input_count; i++) input[i] = value(rank, i);
        MPI_Barrier(MPI_COMM_WORLD);
        call();
        for (size_t i = 0; i < output_count; i++) mine += output[i] != expected(i);
    }
    root = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static double slowest(double mine) {
    double most;
    MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

/* Seconds of `calls` broadcasts, each from another root and after a barrier, which is not timed: from when the root begins
 * until the last rank has ended. */
static double broadcasts(int calls, int rewritten) {
    static double began[MOST_CALLS], ended[MOST_CALLS];
    double took = 0;
    for (int i = 0; i < calls; i++) {
        if (rewritten && rank == root) rewrite();
        MPI_Barrier(MPI_COMM_WORLD);
        began[i] = now();
        call();
        ended[i] = now();
        if (rank != root) began[i] = 0;
        root = (root + 1) % ranks;
    }
    MPI_Allreduce(MPI_IN_PLACE, began, calls, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, ended, calls, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 0; i < calls; i++) took += ended[i] - began[i];
    return took;
}

/* Seconds of `calls` calls one after the other; the slowest rank's. */
static double batch(int calls, int rewritten) {
    double took = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (collective == BROADCAST) return broadcasts(calls, rewritten);
    double began = now();
    for (int i = 0; i < calls; i++) {
        if (rewritten) rewrite();
        call();
    }
    took = now() - began;
    if (rewritten) {
        /* What rewriting alone takes is taken off. */
        MPI_Barrier(MPI_COMM_WORLD);
        began = now();
        for (int i = 0; i < calls; i++) rewrite();
        took -= now() - began;
    }
    return slowest(took);
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Calls of a batch, median and least seconds of a call over all batches. */
static int measure(int rewritten, double batch_seconds, int batches, double most_seconds, double *median, double *least) {
    int calls = 1, done = 0;
    double spent = 0, times[MOST_BATCHES];
    root = 0;
    batch(WARMUP, rewritten);
    for (;;) {
        double began = now();
        batch(calls, rewritten);
        double all = slowest(now() - began);
        spent += all;
        if (all >= batch_seconds / 2 || calls * 4 > MOST_CALLS || spent > most_seconds / 2) break;
        calls *= all * 4 < batch_seconds ? 4 : 2;
    }
    while (done < batches) {
        double began = now();
        times[done++] = batch(calls, rewritten) / calls;
        spent += slowest(now() - began);
        if (spent > most_seconds && done >= 3) break;
    }
    qsort(times, done, sizeof *times, by_size);
    *median = done % 2 ? times[done / 2] : (times[done / 2 - 1] + times[done / 2]) / 2;
    *least = times[0];
    return calls;
}

/* Pages of its own, all touched. */
static float *fresh(size_t count) {
    void *memory = 0;
    size_t bytes = (count * sizeof(float) + 4095) / 4096 * 4096;
    if (posix_memalign(&memory, 4096, bytes)) exit(4);
    memset(memory, 0, bytes);
    return memory;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    while (argc == 6 && collective < COLLECTIVES && strcmp(argv[1], names[collective])) collective++;
    if (argc != 6 || collective == COLLECTIVES) {
        if (!rank) fprintf(stderr, "usage: collbench COLLECTIVE BYTES BATCH_SECONDS BATCHES MOST_SECONDS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    size_t bytes = strtoull(argv[2], 0, 10), all = bytes / sizeof(float);
    double batch_seconds = atof(argv[3]), most_seconds = atof(argv[5]);
    int batches = atoi(argv[4]);
    if (batches < 1 || batches > MOST_BATCHES) batches = 7;
    int whole = collective == ALLREDUCE || collective == BROADCAST;
    block = whole ? all : all / ranks;
    if (!block) block = 1;
    input_count = whole || collective == ALLGATHER ? block : block * ranks;
    output_count = whole || collective == REDUCESCATTER ? block : block * ranks;
    output = fresh(output_count);
    input = collective == BROADCAST ? output : fresh(input_count);

    if (!rank) {
        char version[MPI_MAX_LIBRARY_VERSION_STRING];
        int length;
        MPI_Get_library_version(version, &length);
        printf("library,%.*s\n", (int)strcspn(version, "\n"), version);
    }
    int calls[2];
    double median[2], least[2];
    long bad = wrong();
    for (int rewritten = 0; rewritten < 2; rewritten++)
        calls[rewritten] = measure(rewritten, batch_seconds, batches, most_seconds, &median[rewritten], &least[rewritten]);
    bad += wrong();
    for (int rewritten = 0; !rank && rewritten < 2; rewritten++)
        printf("cell,%s,%d,%zu,plain,%s,%d,%.4f,%.4f,%ld\n", names[collective], ranks, bytes,
               rewritten ? "rewritten" : "reused", calls[rewritten], median[rewritten] * 1e6, least[rewritten] * 1e6, bad);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
