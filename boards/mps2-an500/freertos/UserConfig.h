// What the image wants of FreeRTOS beyond the defaults of the crate.
#ifndef USER_CONFIG_H
#define USER_CONFIG_H

#include <stdint.h>

// Which task runs, for the trace.
#include "../../freertos/trace.h"

// Time on the processor of every task, in microseconds.
extern uint32_t board_microseconds(void);
#define configGENERATE_RUN_TIME_STATS            1
#define configRUN_TIME_COUNTER_TYPE              uint32_t
#define portCONFIGURE_TIMER_FOR_RUN_TIME_STATS()
#define portGET_RUN_TIME_COUNTER_VALUE()         board_microseconds()

#endif
