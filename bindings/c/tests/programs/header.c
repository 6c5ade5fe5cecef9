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
    CHECK(sizeof(rcc_status_t) == 4 && sizeof(rcc_dtype_t) == 4 && sizeof(rcc_op_t) == 8);
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
    CHECK(rcc_compile(comm, &source, &algorithm) != RCC_SUCCESS || algorithm != 0);
    CHECK(rcc_comm_destroy(comm) == RCC_SUCCESS);
    return 0;
}
