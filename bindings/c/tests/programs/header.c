/* The header alone, in each standard and in C++: its structures, constants and every function's type. */

#include <rcc.h>

#include <stdio.h>
#include <string.h>

#define CHECK(right)                                                      \
    do {                                                                  \
        if (!(right)) {                                                   \
            fprintf(stderr, "line %d: %s\n%s\n", __LINE__, #right, rcc_last_error()); \
            return 1;                                                     \
        }                                                                 \
    } while (0)

/* What programs were built with: this changes only together with RCC_ABI_VERSION. Structures that begin with their size may grow at the
 * end. */
static int layout(void) {
    CHECK(RCC_ABI_VERSION == 1);
    CHECK(sizeof(rcc_options_t) >= 64 && offsetof(rcc_options_t, registered) == 8);
    CHECK(offsetof(rcc_options_t, in_flight) == 16 && offsetof(rcc_options_t, progress) == 20);
    CHECK(offsetof(rcc_options_t, late_ms) == 24 && offsetof(rcc_options_t, stalled_ms) == 32);
    CHECK(offsetof(rcc_options_t, warn_ms) == 40 && offsetof(rcc_options_t, cache) == 48);
    CHECK(offsetof(rcc_options_t, tuning) == 56);
    CHECK(sizeof(rcc_call_t) >= 88 && offsetof(rcc_call_t, comm) == 8 && offsetof(rcc_call_t, collective) == 16);
    CHECK(offsetof(rcc_call_t, dtype) == 20 && offsetof(rcc_call_t, op) == 24 && offsetof(rcc_call_t, send) == 32);
    CHECK(offsetof(rcc_call_t, recv) == 40 && offsetof(rcc_call_t, count) == 48 && offsetof(rcc_call_t, root) == 56);
    CHECK(offsetof(rcc_call_t, reserved) == 60 && offsetof(rcc_call_t, algorithm) == 64 && offsetof(rcc_call_t, buffers) == 72);
    CHECK(offsetof(rcc_call_t, buffer_count) == 80);
    CHECK(sizeof(rcc_source_t) >= 80 && offsetof(rcc_source_t, file) == 8 && offsetof(rcc_source_t, text) == 16);
    CHECK(offsetof(rcc_source_t, algorithm) == 24 && offsetof(rcc_source_t, shape) == 32);
    CHECK(offsetof(rcc_source_t, shape_count) == 40 && offsetof(rcc_source_t, params) == 48);
    CHECK(offsetof(rcc_source_t, param_count) == 56 && offsetof(rcc_source_t, bytes) == 64);
    CHECK(offsetof(rcc_source_t, registered) == 72 && offsetof(rcc_source_t, reserved) == 76);
    CHECK(offsetof(rcc_options_t, size) == 0 && offsetof(rcc_call_t, size) == 0 && offsetof(rcc_source_t, size) == 0);
    CHECK(offsetof(rcc_buffer_t, name) == 0 && offsetof(rcc_buffer_t, count) == 24 && offsetof(rcc_param_t, name) == 0);
    CHECK(sizeof(rcc_buffer_t) == 32 && offsetof(rcc_buffer_t, send) == 8 && offsetof(rcc_buffer_t, recv) == 16);
    CHECK(sizeof(rcc_param_t) == 16 && offsetof(rcc_param_t, value) == 8);
    CHECK(sizeof(rcc_status_t) == 4 && sizeof(rcc_dtype_t) == 4 && sizeof(rcc_collective_t) == 4);
    CHECK(sizeof(rcc_op_t) == 8 && sizeof(rcc_algorithm_t) == 8);
    CHECK(RCC_SUCCESS == 0 && RCC_ERROR_INVALID == 1 && RCC_ERROR_UNSUPPORTED == 2 && RCC_ERROR_MISMATCH == 3);
    CHECK(RCC_ERROR_PEER_DIED == 4 && RCC_ERROR_LATE == 5 && RCC_ERROR_STALLED == 6 && RCC_ERROR_TRANSPORT == 7);
    CHECK(RCC_ERROR_RESOURCE == 8 && RCC_ERROR_ABORTED == 9 && RCC_ERROR_INTERNAL == 10);
    CHECK(RCC_F32 == 0 && RCC_F64 == 1 && RCC_F16 == 2 && RCC_BF16 == 3 && RCC_F8E4M3 == 4 && RCC_F8E5M2 == 5);
    CHECK(RCC_I8 == 6 && RCC_I32 == 7 && RCC_I64 == 8 && RCC_U8 == 9 && RCC_U32 == 10 && RCC_U64 == 11);
    CHECK(RCC_ALL_REDUCE == 0 && RCC_ALL_GATHER == 1 && RCC_REDUCE_SCATTER == 2 && RCC_ALL_TO_ALL == 3);
    CHECK(RCC_BROADCAST == 4 && RCC_REDUCE == 5 && RCC_GATHER == 6 && RCC_SCATTER == 7);
    CHECK(RCC_SUM == 0 && RCC_PROD == 1 && RCC_MIN == 2 && RCC_MAX == 3 && RCC_AVG == 4 && RCC_NO_COLOR == -1);
    return 0;
}

int main(void) {
    rcc_options_t options = RCC_OPTIONS_INIT;
    rcc_source_t source = RCC_SOURCE_INIT;
    rcc_call_t call = RCC_CALL_INIT;
    rcc_comm_t *comm = NULL;
    rcc_request_t *request = NULL;
    rcc_algorithm_t algorithm = 0;
    uint32_t size = 0;
    float number = 3;

    CHECK(rcc_abi_version() == RCC_ABI_VERSION);
    CHECK(strlen(rcc_version()) > 0);
    CHECK(options.size == sizeof options && source.size == sizeof source && call.size == sizeof call);
    CHECK(layout() == 0);
    CHECK(rcc_dtype_size(RCC_F64) == 8 && rcc_dtype_size(RCC_F8E5M2) == 1);
    CHECK(strcmp(rcc_status_name(RCC_ERROR_LATE), "RCC_ERROR_LATE") == 0);
    CHECK(rcc_comm_connect(0, 1, NULL, "secret", &options, &comm) == RCC_SUCCESS);
    CHECK(rcc_comm_size(comm, &size) == RCC_SUCCESS && size == 1);
    call.comm = comm;
    call.send = call.recv = &number;
    call.count = 1;
    CHECK(rcc_call(&call) == RCC_SUCCESS && number == 3);
    CHECK(rcc_start(&call, &request) == RCC_SUCCESS && rcc_wait(&request) == RCC_SUCCESS && request == NULL);
    source.algorithm = "std::allreduce::ring";
    CHECK(rcc_compile(comm, &source, &algorithm) == RCC_SUCCESS && algorithm != 0);
    CHECK(rcc_comm_destroy(comm) == RCC_SUCCESS);
    return 0;
}
