/* rcc: collectives for C programs, compiled, proved and selected where they run.
 *
 * - Every call returns a status; rcc_last_error() has the whole story of the last one that failed in this thread.
 * - All ranks of a communicator make the same calls in the same order. Where they do not, all are told. How a call is made
 *   (at once; or started, or grouped) is part of it: what one rank starts the others do not make at once.
 * - A communicator, and a request, is used by one thread at a time; another that comes meanwhile is refused. Different ones
 *   may be used at once. rcc_comm_abort, rcc_comm_failure, rcc_comm_rank, rcc_comm_size, and all that has no communicator may
 *   be called from any thread at any time.
 * - Buffers are the caller's. They belong to a call until it has returned, or until rcc_test or rcc_wait says that it has ended.
 * - Handles are freed by rcc_comm_destroy, rcc_wait or rcc_test, rcc_op_free. One that is NULL, freed or of another kind is
 *   refused; it is never followed.
 * - The library installs no signal handler, and prints nothing unless rcc_log_to_stderr asks it to. Communicators do not outlive fork().
 * - Within one RCC_ABI_VERSION nothing that is here changes; structures whose first field is their size may grow at the end.
 *
 * docs/c.md tells more. Made by cbindgen of bindings/c/src: `cargo xtask header` writes it anew.
 */

#ifndef RCC_H
#define RCC_H

#include <stddef.h>
#include <stdint.h>

/**
 * For rcc_comm_split: in none of the new communicators.
 */
#define RCC_NO_COLOR -1

/**
 * The version of the binary interface that this header describes. It grows when something that was there
 * has changed; programs built for another number must be built anew.
 */
#define RCC_ABI_VERSION 1

/**
 * How a call ended. RCC_SUCCESS is 0; numbers never change their meaning, and later versions may add some.
 */
enum rcc_status_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * It did what it was to do.
     */
    RCC_SUCCESS = 0,
    /**
     * The caller asked for something that makes no sense: a null or freed handle, a length that does not
     * fit, a wrong program.
     */
    RCC_ERROR_INVALID = 1,
    /**
     * It makes sense, but this machine or this version cannot do it.
     */
    RCC_ERROR_UNSUPPORTED = 2,
    /**
     * Two ranks make different calls, or gave different options. The message shows both sides.
     */
    RCC_ERROR_MISMATCH = 3,
    /**
     * A rank's process ended.
     */
    RCC_ERROR_PEER_DIED = 4,
    /**
     * A rank never entered the call.
     */
    RCC_ERROR_LATE = 5,
    /**
     * All entered, and nothing moves.
     */
    RCC_ERROR_STALLED = 6,
    /**
     * A connection broke.
     */
    RCC_ERROR_TRANSPORT = 7,
    /**
     * Not enough memory, descriptors or processes.
     */
    RCC_ERROR_RESOURCE = 8,
    /**
     * A rank has ended the communicator.
     */
    RCC_ERROR_ABORTED = 9,
    /**
     * A fault of rcc itself. Please report it, with the message.
     */
    RCC_ERROR_INTERNAL = 10,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum rcc_status_t rcc_status_t;
#else
typedef int32_t rcc_status_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What a call does.
 */
enum rcc_collective_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * rcc_all_reduce.
     */
    RCC_ALL_REDUCE = 0,
    /**
     * rcc_all_gather.
     */
    RCC_ALL_GATHER = 1,
    /**
     * rcc_reduce_scatter.
     */
    RCC_REDUCE_SCATTER = 2,
    /**
     * rcc_all_to_all.
     */
    RCC_ALL_TO_ALL = 3,
    /**
     * rcc_broadcast.
     */
    RCC_BROADCAST = 4,
    /**
     * rcc_reduce.
     */
    RCC_REDUCE = 5,
    /**
     * rcc_gather.
     */
    RCC_GATHER = 6,
    /**
     * rcc_scatter.
     */
    RCC_SCATTER = 7,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum rcc_collective_t rcc_collective_t;
#else
typedef int32_t rcc_collective_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * The type of the elements.
 */
enum rcc_dtype_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * float.
     */
    RCC_F32 = 0,
    /**
     * double.
     */
    RCC_F64 = 1,
    /**
     * IEEE binary16.
     */
    RCC_F16 = 2,
    /**
     * bfloat16.
     */
    RCC_BF16 = 3,
    /**
     * 8-bit float of OCP: 4 bits of exponent, 3 of mantissa; no infinities.
     */
    RCC_F8E4M3 = 4,
    /**
     * 8-bit float of OCP: 5 bits of exponent, 2 of mantissa.
     */
    RCC_F8E5M2 = 5,
    /**
     * int8_t. Sums and products of integers wrap.
     */
    RCC_I8 = 6,
    /**
     * int32_t.
     */
    RCC_I32 = 7,
    /**
     * int64_t.
     */
    RCC_I64 = 8,
    /**
     * uint8_t.
     */
    RCC_U8 = 9,
    /**
     * uint32_t.
     */
    RCC_U32 = 10,
    /**
     * uint64_t.
     */
    RCC_U64 = 11,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum rcc_dtype_t rcc_dtype_t;
#else
typedef int32_t rcc_dtype_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * One rank among others. Only pointers to it are used.
 */
typedef struct rcc_comm_t rcc_comm_t;

/**
 * A call that was started. Only pointers to it are used.
 */
typedef struct rcc_request_t rcc_request_t;

/**
 * A parameter of an algorithm.
 */
typedef struct rcc_param_t {
    /**
     * What the program calls it.
     */
    const char *name;
    /**
     * Its value, such as "4".
     */
    const char *value;
} rcc_param_t;

/**
 * A program to be compiled. Begin with RCC_SOURCE_INIT; a field that is 0 (or NULL) means the default.
 */
typedef struct rcc_source_t {
    /**
     * sizeof(rcc_source_t): later versions may add fields at the end.
     */
    size_t size;
    /**
     * The file it is in, and what messages call it.
     */
    const char *file;
    /**
     * The text, if it is not to be read from the file. Without file and text, `algorithm` is a standard
     * one, such as "std::allreduce::ring".
     */
    const char *text;
    /**
     * Which of its algorithms. Default: its only one.
     */
    const char *algorithm;
    /**
     * Level sizes of the world, outermost first, for algorithms of several levels. Default: all ranks in
     * one.
     */
    const uint32_t *shape;
    /**
     * How many levels.
     */
    size_t shape_count;
    /**
     * Parameters of the algorithm.
     */
    const struct rcc_param_t *params;
    /**
     * How many.
     */
    size_t param_count;
    /**
     * The size in bytes of the calls it is for, by which its schedule and the compiler choose. Default:
     * large ones.
     */
    uint64_t bytes;
    /**
     * Not 0: ranks may reach into each other's buffers, which are then all from rcc_alloc.
     */
    uint32_t registered;
    /**
     * Not used: 0.
     */
    uint32_t reserved;
} rcc_source_t;

/**
 * An algorithm that is open at all ranks of a communicator, with which it goes. 0 is none.
 */
typedef uint64_t rcc_algorithm_t;

/**
 * What a communicator may be told. Begin with RCC_OPTIONS_INIT; a field that is 0 (or NULL) means the
 * default. What is marked (=) must be the same at all ranks.
 */
typedef struct rcc_options_t {
    /**
     * sizeof(rcc_options_t): later versions may add fields at the end.
     */
    size_t size;
    /**
     * (=) Bytes of memory for rcc_alloc at each rank. Default: none.
     */
    uint64_t registered;
    /**
     * (=) How many calls that run one plan may be under way at once. Default: 1. A further one waits until the
     * first of them has ended.
     */
    uint32_t in_flight;
    /**
     * Not 0: a thread drives calls that are under way while nobody waits for them.
     */
    uint32_t progress;
    /**
     * For how many milliseconds others wait for a rank that has not entered a call: then RCC_ERROR_LATE.
     * Default: 600,000.
     */
    uint64_t late_ms;
    /**
     * For how many milliseconds nothing may move in a call that all have entered: then RCC_ERROR_STALLED.
     * Default: 60,000.
     */
    uint64_t stalled_ms;
    /**
     * After how many milliseconds a wait is told to the log, with the ranks that are missing. Default: 30,000.
     */
    uint64_t warn_ms;
    /**
     * The folder of compiled plans. Default: as the environment says (RCC_CACHE_DIR, else ~/.cache/rcc). "":
     * none.
     */
    const char *cache;
    /**
     * (=) What was measured, by `rcc tune`. Default: as the environment says (RCC_TUNING, else
     * ~/.config/rcc/tuning.toml). "": none.
     */
    const char *tuning;
} rcc_options_t;

/**
 * What combines elements: one of the constants below, or made by rcc_op_premul_sum or rcc_op_create.
 */
typedef uint64_t rcc_op_t;

/**
 * A buffer of an algorithm, by its name in the program. What the collective declares as `in` has `send`,
 * `out` has `recv`; `inout` has both, which are the same in place. One that only other ranks have (the
 * `output` of a gather) may be named or left out; its memory is not looked at. Named at the address of the
 * other side it says that the call is in place, as in rcc_gather; where the algorithm serves calls in place
 * alone, or out of place alone, nothing need be said.
 */
typedef struct rcc_buffer_t {
    /**
     * What the program calls it.
     */
    const char *name;
    /**
     * What is read, or NULL.
     */
    const void *send;
    /**
     * What is written, or NULL.
     */
    void *recv;
    /**
     * How many elements.
     */
    size_t count;
} rcc_buffer_t;

/**
 * A call, as rcc_call, rcc_start and rcc_group take it. Begin with RCC_CALL_INIT. It is of a standard
 * collective, or of an algorithm of the caller's if `algorithm` is not 0.
 */
typedef struct rcc_call_t {
    /**
     * sizeof(rcc_call_t): later versions may add fields at the end.
     */
    size_t size;
    /**
     * Who calls.
     */
    struct rcc_comm_t *comm;
    /**
     * What, if it is no algorithm.
     */
    rcc_collective_t collective;
    /**
     * Of which elements.
     */
    rcc_dtype_t dtype;
    /**
     * Combined how, where anything is.
     */
    rcc_op_t op;
    /**
     * What is sent, as the function of the collective has it; RCC_BROADCAST: not looked at.
     */
    const void *send;
    /**
     * What is received, as the function of the collective has it; RCC_BROADCAST: the data.
     */
    void *recv;
    /**
     * How many elements, as the function of the collective has it.
     */
    size_t count;
    /**
     * From or to which rank, where there is one.
     */
    uint32_t root;
    /**
     * Not used: 0.
     */
    uint32_t reserved;
    /**
     * An algorithm, or 0.
     */
    rcc_algorithm_t algorithm;
    /**
     * The buffers of the algorithm.
     */
    const struct rcc_buffer_t *buffers;
    /**
     * How many there are.
     */
    size_t buffer_count;
} rcc_call_t;

/**
 * A function that combines elements: into[i] = into[i] o other[i], for `count` elements of the type that
 * the operator was made for. Both begin at multiples of 64 bytes. It must be associative and commutative,
 * and give the same for the same operands at all ranks. Whichever thread drives the call calls it, several
 * at once. It must return: no exception, no longjmp, no thread's end; and it makes no calls of rcc.
 * `context` is what rcc_op_create was given.
 */
typedef void (*rcc_combine_t)(void *into, const void *other, size_t count, rcc_dtype_t dtype, void *context);

/**
 * a + b.
 */
#define RCC_SUM 0

/**
 * a * b.
 */
#define RCC_PROD 1

/**
 * The smaller one; a NaN wins.
 */
#define RCC_MIN 2

/**
 * The larger one; a NaN wins.
 */
#define RCC_MAX 3

/**
 * The sum, divided by the number of ranks; integers are cut off.
 */
#define RCC_AVG 4

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Compiles a program, which is proved before it runs, and opens its plan. All ranks call it, with the same
 * text. What is wrong with the program is the error's message, with its lines.
 *
 * The caller answers for it that:
 * `source` is NULL, which is refused, or as rcc_source_t says, with pointers that are NULL or text that
 * ends with a NUL; `algorithm` may be written, or is NULL, which is refused.
 */
rcc_status_t rcc_compile(struct rcc_comm_t *comm,
                         const struct rcc_source_t *source,
                         rcc_algorithm_t *algorithm);

/**
 * Reads a plan that `rcc compile -o` wrote, verifies it, and opens it. All ranks call it, each with a file
 * of its own or one of all.
 *
 * The caller answers for it that:
 * `file` is text that ends with a NUL, or NULL, which is refused; `algorithm` may be written, or is NULL,
 * which is refused.
 */
rcc_status_t rcc_load(struct rcc_comm_t *comm, const char *file, rcc_algorithm_t *algorithm);

/**
 * The name of an algorithm, such as "ring". It need not be freed, and stays until the communicator is
 * destroyed.
 *
 * The caller answers for it that:
 * `name` may be written, or is NULL, which is refused.
 */
rcc_status_t rcc_algorithm_name(struct rcc_comm_t *comm, rcc_algorithm_t algorithm, const char **name);

/**
 * Joins the other ranks of a job that a launcher has started (rcc launch, torchrun, mpirun of Open MPI,
 * MPICH or Intel MPI, srun), as its variables say. Every rank gives the same options; NULL: the defaults.
 *
 * The caller answers for it that:
 * `options` is NULL or as rcc_options_t says; `comm` may be written, or is NULL, which is refused.
 */
rcc_status_t rcc_comm_from_env(const struct rcc_options_t *options, struct rcc_comm_t **comm);

/**
 * Joins the other ranks of a world of `size` at an address that all know: "host:port", where rank 0
 * listens. Whoever knows the secret may take part.
 *
 * The caller answers for it that:
 * As for rcc_comm_from_env; `address` and `secret` are text that ends with a NUL, or NULL, which is
 * refused (in a world of one the address may be NULL).
 */
rcc_status_t rcc_comm_connect(uint32_t rank,
                              uint32_t size,
                              const char *address,
                              const char *secret,
                              const struct rcc_options_t *options,
                              struct rcc_comm_t **comm);

/**
 * Communicators for `size` ranks that are threads of this process: `comms` has room for them. Each goes to
 * a thread of its own, for all ranks make each call together.
 *
 * The caller answers for it that:
 * `options` is NULL or as rcc_options_t says; `comms` has room for `size` pointers, or is NULL, which is
 * refused.
 */
rcc_status_t rcc_comm_threads(uint32_t size, const struct rcc_options_t *options, struct rcc_comm_t **comms);

/**
 * Splits into communicators, one for each colour; all ranks call it. Members are numbered in the order of
 * their keys, those of equal keys in the order of their ranks here. A rank whose colour is RCC_NO_COLOR
 * (or less than 0) gets NULL.
 *
 * The caller answers for it that:
 * `part` may be written, or is NULL, which is refused.
 */
rcc_status_t rcc_comm_split(struct rcc_comm_t *comm, int64_t color, int64_t key, struct rcc_comm_t **part);

/**
 * Another communicator of the same ranks, which all call it. What ends one does not end the other.
 *
 * The caller answers for it that:
 * As for rcc_comm_split.
 */
rcc_status_t rcc_comm_duplicate(struct rcc_comm_t *comm, struct rcc_comm_t **copy);

/**
 * A communicator of all ranks that are still there, after one has failed; all of them call it. It ends the
 * old one, which is still to be destroyed.
 *
 * The caller answers for it that:
 * As for rcc_comm_split.
 */
rcc_status_t rcc_comm_shrink(struct rcc_comm_t *comm, struct rcc_comm_t **rest);

/**
 * Waits for calls that are under way, frees the communicator, its algorithms and the memory of rcc_alloc,
 * and tells the others that this rank makes no more calls. NULL is nothing.
 */
rcc_status_t rcc_comm_destroy(struct rcc_comm_t *comm);

/**
 * Ends the communicator at all ranks, from any thread, whatever this rank is in: every call under way ends
 * with RCC_ERROR_ABORTED and `why`, and no later one begins. If it has been ended before, nothing happens.
 * Buffers are the caller's again only when the calls that have them have returned.
 *
 * The caller answers for it that:
 * `why` is text that ends with a NUL, or NULL.
 */
rcc_status_t rcc_comm_abort(struct rcc_comm_t *comm, const char *why);

/**
 * What ended the communicator, as the status that every call returns from now on, and its message as the
 * thread's last error; RCC_SUCCESS if nothing has. From any thread.
 */
rcc_status_t rcc_comm_failure(struct rcc_comm_t *comm);

/**
 * Which rank this is, from 0. From any thread.
 *
 * The caller answers for it that:
 * `rank` may be written, or is NULL, which is refused.
 */
rcc_status_t rcc_comm_rank(struct rcc_comm_t *comm, uint32_t *rank);

/**
 * How many ranks there are. From any thread.
 *
 * The caller answers for it that:
 * `size` may be written, or is NULL, which is refused.
 */
rcc_status_t rcc_comm_size(struct rcc_comm_t *comm, uint32_t *size);

/**
 * Makes a call; returns when the result is there and nobody touches the buffers any more. As the function
 * of the collective, and rcc_run for algorithms.
 *
 * The caller answers for it that:
 * `call` is NULL, which is refused, or as rcc_call_t says; until it returns, what is sent may be read,
 * what is received may be written, and nobody else writes either or reads what is received.
 */
rcc_status_t rcc_call(const struct rcc_call_t *call);

/**
 * Starts a call, which goes on while this rank waits for any call, or asks for one; with options.progress
 * always. Its buffers belong to it until rcc_test or rcc_wait says that it has ended: nobody else writes
 * them, or reads what is received. Where as many calls of one plan are under way as may be
 * (options.in_flight), the first of these ends before. Whether a call is made at once, or started or
 * grouped, is part of it, and the same at all ranks: RCC_ERROR_MISMATCH, or RCC_ERROR_LATE, if not.
 *
 * The caller answers for it that:
 * As for rcc_call, until the call has ended; `request` may be written, or is NULL, which is refused.
 */
rcc_status_t rcc_start(const struct rcc_call_t *call, struct rcc_request_t **request);

/**
 * Launches many calls as one: they start together, in this order, and have ended when it returns. If any
 * of them makes no sense, none is started. All ranks launch the same, and as a group (or each by rcc_start),
 * not by calls at once. They may be of several communicators
 * that this thread holds, if these were made of one by split, duplicate or shrink. Returns the error of
 * the first call that failed.
 *
 * The caller answers for it that:
 * There are `count` pointers to calls, each as for rcc_call.
 */
rcc_status_t rcc_group(const struct rcc_call_t *const *calls, size_t count);

/**
 * The algorithm whose plan a call would run (a call of at most 4 KiB: if it did not go without one), opened. All
 * ranks call it. It can be called as any other, with the buffers of its collective by their names in
 * stdlib/collectives.coll; the name tells which it is.
 *
 * The caller answers for it that:
 * As for rcc_call; nothing is read from or written to buffers. `algorithm` may be written, or is NULL, which is
 * refused.
 */
rcc_status_t rcc_select(const struct rcc_call_t *call,
                        rcc_algorithm_t *algorithm);

/**
 * Every rank ends with the reduction of all ranks' `send` in `recv`; both have `count` elements. In place:
 * recv == send.
 *
 * The caller answers for it that:
 * As for rcc_call.
 */
rcc_status_t rcc_all_reduce(struct rcc_comm_t *comm,
                            const void *send,
                            void *recv,
                            size_t count,
                            rcc_dtype_t dtype,
                            rcc_op_t op);

/**
 * Every rank ends with all ranks' `send`, of `count` elements each, in the order of ranks in `recv`. In
 * place: send == recv + rank * count elements.
 *
 * The caller answers for it that:
 * As for rcc_call.
 */
rcc_status_t rcc_all_gather(struct rcc_comm_t *comm,
                            const void *send,
                            void *recv,
                            size_t count,
                            rcc_dtype_t dtype);

/**
 * Rank r ends with the reduction of all ranks' block r of `send` in `recv`; a block has `count` elements.
 * In place: recv == send + rank * count elements; the other blocks may hold anything afterwards.
 *
 * The caller answers for it that:
 * As for rcc_call.
 */
rcc_status_t rcc_reduce_scatter(struct rcc_comm_t *comm,
                                const void *send,
                                void *recv,
                                size_t count,
                                rcc_dtype_t dtype,
                                rcc_op_t op);

/**
 * Rank r ends with block r of every rank's `send`, in the order of ranks in `recv`; a block has `count`
 * elements. Not in place.
 *
 * The caller answers for it that:
 * As for rcc_call.
 */
rcc_status_t rcc_all_to_all(struct rcc_comm_t *comm,
                            const void *send,
                            void *recv,
                            size_t count,
                            rcc_dtype_t dtype);

/**
 * Every rank ends with the root's `count` elements of `data`.
 *
 * The caller answers for it that:
 * As for rcc_call.
 */
rcc_status_t rcc_broadcast(struct rcc_comm_t *comm,
                           void *data,
                           size_t count,
                           rcc_dtype_t dtype,
                           uint32_t root);

/**
 * The root ends with the reduction of all ranks' `send`, of `count` elements, in its `recv`, which is not
 * touched elsewhere. In place: recv == send; with memory of rcc_alloc all ranks say so or none.
 *
 * The caller answers for it that:
 * As for rcc_call.
 */
rcc_status_t rcc_reduce(struct rcc_comm_t *comm,
                        const void *send,
                        void *recv,
                        size_t count,
                        rcc_dtype_t dtype,
                        rcc_op_t op,
                        uint32_t root);

/**
 * The root ends with all ranks' `send`, of `count` elements each, in the order of ranks in its `recv`,
 * which is not touched elsewhere. In place: at the root send == recv + root * count elements; with memory
 * of rcc_alloc all ranks say so (elsewhere recv == send) or none.
 *
 * The caller answers for it that:
 * As for rcc_call.
 */
rcc_status_t rcc_gather(struct rcc_comm_t *comm,
                        const void *send,
                        void *recv,
                        size_t count,
                        rcc_dtype_t dtype,
                        uint32_t root);

/**
 * Rank r ends with block r of the root's `send`, which is not looked at elsewhere, in `recv`; a block has
 * `count` elements. In place: at the root recv == send + root * count elements; with memory of rcc_alloc
 * all ranks say so (elsewhere send == recv) or none.
 *
 * The caller answers for it that:
 * As for rcc_call.
 */
rcc_status_t rcc_scatter(struct rcc_comm_t *comm,
                         const void *send,
                         void *recv,
                         size_t count,
                         rcc_dtype_t dtype,
                         uint32_t root);

/**
 * No rank leaves before all have entered.
 */
rcc_status_t rcc_barrier(struct rcc_comm_t *comm);

/**
 * rcc_all_reduce, started as by rcc_start.
 *
 * The caller answers for it that:
 * As for rcc_start.
 */
rcc_status_t rcc_all_reduce_start(struct rcc_comm_t *comm,
                                  const void *send,
                                  void *recv,
                                  size_t count,
                                  rcc_dtype_t dtype,
                                  rcc_op_t op,
                                  struct rcc_request_t **request);

/**
 * rcc_all_gather, started as by rcc_start.
 *
 * The caller answers for it that:
 * As for rcc_start.
 */
rcc_status_t rcc_all_gather_start(struct rcc_comm_t *comm,
                                  const void *send,
                                  void *recv,
                                  size_t count,
                                  rcc_dtype_t dtype,
                                  struct rcc_request_t **request);

/**
 * rcc_reduce_scatter, started as by rcc_start.
 *
 * The caller answers for it that:
 * As for rcc_start.
 */
rcc_status_t rcc_reduce_scatter_start(struct rcc_comm_t *comm,
                                      const void *send,
                                      void *recv,
                                      size_t count,
                                      rcc_dtype_t dtype,
                                      rcc_op_t op,
                                      struct rcc_request_t **request);

/**
 * rcc_all_to_all, started as by rcc_start.
 *
 * The caller answers for it that:
 * As for rcc_start.
 */
rcc_status_t rcc_all_to_all_start(struct rcc_comm_t *comm,
                                  const void *send,
                                  void *recv,
                                  size_t count,
                                  rcc_dtype_t dtype,
                                  struct rcc_request_t **request);

/**
 * rcc_broadcast, started as by rcc_start.
 *
 * The caller answers for it that:
 * As for rcc_start.
 */
rcc_status_t rcc_broadcast_start(struct rcc_comm_t *comm,
                                 void *data,
                                 size_t count,
                                 rcc_dtype_t dtype,
                                 uint32_t root,
                                 struct rcc_request_t **request);

/**
 * rcc_reduce, started as by rcc_start.
 *
 * The caller answers for it that:
 * As for rcc_start.
 */
rcc_status_t rcc_reduce_start(struct rcc_comm_t *comm,
                              const void *send,
                              void *recv,
                              size_t count,
                              rcc_dtype_t dtype,
                              rcc_op_t op,
                              uint32_t root,
                              struct rcc_request_t **request);

/**
 * rcc_gather, started as by rcc_start.
 *
 * The caller answers for it that:
 * As for rcc_start.
 */
rcc_status_t rcc_gather_start(struct rcc_comm_t *comm,
                              const void *send,
                              void *recv,
                              size_t count,
                              rcc_dtype_t dtype,
                              uint32_t root,
                              struct rcc_request_t **request);

/**
 * rcc_scatter, started as by rcc_start.
 *
 * The caller answers for it that:
 * As for rcc_start.
 */
rcc_status_t rcc_scatter_start(struct rcc_comm_t *comm,
                               const void *send,
                               void *recv,
                               size_t count,
                               rcc_dtype_t dtype,
                               uint32_t root,
                               struct rcc_request_t **request);

/**
 * Calls an algorithm with its buffers, as the collective that it implements promises.
 *
 * The caller answers for it that:
 * As for rcc_call.
 */
rcc_status_t rcc_run(struct rcc_comm_t *comm,
                     rcc_algorithm_t algorithm,
                     rcc_dtype_t dtype,
                     rcc_op_t op,
                     const struct rcc_buffer_t *buffers,
                     size_t buffer_count);

/**
 * rcc_run, started as by rcc_start.
 *
 * The caller answers for it that:
 * As for rcc_start.
 */
rcc_status_t rcc_run_start(struct rcc_comm_t *comm,
                           rcc_algorithm_t algorithm,
                           rcc_dtype_t dtype,
                           rcc_op_t op,
                           const struct rcc_buffer_t *buffers,
                           size_t buffer_count,
                           struct rcc_request_t **request);

/**
 * Zeroed memory for `bytes` bytes that peers may reach into, at a multiple of 4096, out of what
 * options.registered gives each rank. It is used as any other memory; calls whose buffers all lie in such
 * memory, at all ranks, copy less. It is the caller's until rcc_free or rcc_comm_destroy. After a call has
 * failed, peers may still write to it.
 *
 * It is handed out as from a stack: what is freed is there again once everything that was allocated after
 * it is freed, too, and no call is under way with any of it.
 *
 * The caller answers for it that:
 * `memory` may be written, or is NULL, which is refused.
 */
rcc_status_t rcc_alloc(struct rcc_comm_t *comm, size_t bytes, void **memory);

/**
 * Gives memory of rcc_alloc back. NULL is nothing. Calls that are under way with it go on with it.
 *
 * The caller answers for it that:
 * Nobody uses the memory any more.
 */
rcc_status_t rcc_free(struct rcc_comm_t *comm, void *memory);

/**
 * Makes an operator: the sum of elements that are each multiplied by `factor` before. Integers only by whole
 * numbers that their type holds. Where there is one rank nothing is combined, and nothing multiplied.
 *
 * The caller answers for it that:
 * `op` may be written, or is NULL, which is refused.
 */
rcc_status_t rcc_op_premul_sum(double factor, rcc_op_t *op);

/**
 * Makes an operator of a function, for elements of one type. All ranks give the same one under the same
 * name, of 1 to 64 bytes: ranks that combine by operators of other names are told. It takes the place of
 * RCC_SUM in any call that reduces, of any communicator.
 *
 * The caller answers for it that:
 * `name` is text that ends with a NUL, or NULL, which is refused; `combine` is as rcc_combine_t says for
 * as long as calls with it may be under way; `op` may be written.
 */
rcc_status_t rcc_op_create(const char *name,
                           rcc_dtype_t dtype,
                           rcc_combine_t combine,
                           void *context,
                           rcc_op_t *op);

/**
 * Frees an operator that was made. Calls that are under way with it go on. A communicator that has called with one of
 * a function remembers it until it is destroyed: make it once, not for each call.
 */
rcc_status_t rcc_op_free(rcc_op_t op);

/**
 * Lets calls go on as far as they can for now. If this one has ended, `*done` is 1, `*request` is freed
 * and NULL, the buffers are the caller's again, and what is returned is how it ended; else `*done` is 0
 * and RCC_SUCCESS is returned, or an error of this function alone: the call is still under way as long as
 * `*request` is not NULL. A request that is NULL has ended well.
 *
 * The caller answers for it that:
 * `request` and `done` may be read and written, or are NULL, which is refused.
 */
rcc_status_t rcc_test(struct rcc_request_t **request, int *done);

/**
 * Waits until the call has ended; `*request` is freed and NULL then, and the buffers are the caller's
 * again, also if it failed: then what lies in those that it was to write is undefined. A request that is
 * NULL has ended well.
 *
 * The caller answers for it that:
 * `request` may be read and written, or is NULL, which is refused.
 */
rcc_status_t rcc_wait(struct rcc_request_t **request);

/**
 * Waits for several calls, whichever of them fails; returns the first error in their order. Each is freed
 * and NULL then; but one that is refused (RCC_ERROR_INVALID: another thread is using it, or it was freed,
 * or stands in the list before) stays as it is, and its call may still be under way: the buffers of a
 * request that is not NULL are not the caller's yet.
 *
 * The caller answers for it that:
 * There are `count` requests, which may be read and written; NULL only if there are none.
 */
rcc_status_t rcc_wait_all(struct rcc_request_t **requests, size_t count);

/**
 * What the last call of this thread that failed has to say: what happened, which rank saw it, where each
 * rank stood, and what to do, in several lines. "" if none has. It stays as it is until another call of
 * this thread fails; it need not be freed.
 */
const char *rcc_last_error(void);

/**
 * The ranks at fault in that error, as far as known: at most `capacity` of them go to `ranks`. Returns how
 * many there are.
 *
 * The caller answers for it that:
 * `ranks` has room for `capacity` numbers, or is NULL: then none are written.
 */
size_t rcc_last_error_ranks(uint32_t *ranks, size_t capacity);

/**
 * The name of a status, such as "RCC_ERROR_LATE". It need not be freed.
 */
const char *rcc_status_name(rcc_status_t status);

/**
 * The bytes of an element of a type; 0 for a number that is no type.
 */
size_t rcc_dtype_size(rcc_dtype_t dtype);

/**
 * The version of the binary interface that the library has: a program that was built with this header
 * needs RCC_ABI_VERSION.
 */
uint32_t rcc_abi_version(void);

/**
 * The version of the library, such as "0.1.0". It need not be freed.
 */
const char *rcc_version(void);

/**
 * Writes to standard error what the variable RCC_LOG asks for, such as RCC_LOG=rcc::call=debug,warn. The
 * library writes nothing unless a program calls this; once is enough for a process.
 */
rcc_status_t rcc_log_to_stderr(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* RCC_H */

/** What a rcc_options_t begins with: all defaults. */
#define RCC_OPTIONS_INIT {sizeof(rcc_options_t), 0, 0, 0, 0, 0, 0, NULL, NULL}

/** What a rcc_source_t begins with. */
#define RCC_SOURCE_INIT {sizeof(rcc_source_t), NULL, NULL, NULL, NULL, 0, NULL, 0, 0, 0, 0}

/** What a rcc_call_t begins with: a sum of floats, with no communicator yet. */
#define RCC_CALL_INIT {sizeof(rcc_call_t), NULL, RCC_ALL_REDUCE, RCC_F32, RCC_SUM, NULL, NULL, 0, 0, 0, 0, NULL, 0}
