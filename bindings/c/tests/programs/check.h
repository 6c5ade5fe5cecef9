/* What the test programs check with: the first thing that is wrong ends the program, with its line. */

#ifndef CHECK_H
#define CHECK_H

#include <rcc.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What must be so. */
#define CHECK(right)                                                                                     \
    do {                                                                                                 \
        if (!(right)) {                                                                                  \
            fprintf(stderr, "%s:%d: %s\nthe last error: %s\n", __FILE__, __LINE__, #right, rcc_last_error()); \
            exit(1);                                                                                     \
        }                                                                                                \
    } while (0)

/* A call that must end so. */
#define ENDS(wanted, call)                                                                               \
    do {                                                                                                 \
        rcc_status_t status_ = (call);                                                                   \
        if (status_ != (wanted)) {                                                                       \
            fprintf(stderr, "%s:%d: %s\n%s, not %s\n%s\n", __FILE__, __LINE__, #call,                    \
                    rcc_status_name(status_), rcc_status_name(wanted), rcc_last_error());                \
            exit(1);                                                                                     \
        }                                                                                                \
    } while (0)

/* A call that must go well. */
#define OK(call) ENDS(RCC_SUCCESS, call)

/* A call that must be refused, in these words among others. */
#define REFUSED(wanted, words, call)                                                                     \
    do {                                                                                                 \
        ENDS(wanted, call);                                                                              \
        if (strstr(rcc_last_error(), words) == NULL) {                                                   \
            fprintf(stderr, "%s:%d: `%s` is not in: %s\n", __FILE__, __LINE__, words, rcc_last_error()); \
            exit(1);                                                                                     \
        }                                                                                                \
    } while (0)

#define INVALID(words, call) REFUSED(RCC_ERROR_INVALID, words, call)

#endif
