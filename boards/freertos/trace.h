// Tells the trace (src/trace.rs) which task runs. For the UserConfig.h of a board:
//     #include "../../freertos/trace.h"
#ifndef LINERATE_TRACE_H
#define LINERATE_TRACE_H

#include <stdint.h>

extern volatile uint8_t linerate_trace_is_on;
extern void linerate_trace_task(uint32_t number);

// The kernel is within its switch here: the number lies in the task, which nobody needs to ask for.
#define traceTASK_SWITCHED_IN()                                     \
    do                                                              \
    {                                                               \
        if (linerate_trace_is_on != 0)                              \
        {                                                           \
            linerate_trace_task((uint32_t) pxCurrentTCB->uxTCBNumber); \
        }                                                           \
    } while (0)

#endif
