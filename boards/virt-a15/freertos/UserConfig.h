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

// The interrupt controller: as in src/interrupts.rs, with all eight bits of a priority.
#define configINTERRUPT_CONTROLLER_BASE_ADDRESS         0x08000000UL
#define configINTERRUPT_CONTROLLER_CPU_INTERFACE_OFFSET 0x00010000UL
#define configUNIQUE_INTERRUPT_PRIORITIES               256
#define configMAX_API_CALL_INTERRUPT_PRIORITY           0xa0

// The tick.
extern void board_start_ticks(void);
extern void board_next_tick(void);
#define configSETUP_TICK_INTERRUPT() board_start_ticks()
#define configCLEAR_TICK_INTERRUPT() board_next_tick()

// The compiler may use the registers of the vector unit for anything: every task has them.
#define configUSE_TASK_FPU_SUPPORT 2

// This port leaves it out.
extern volatile uint32_t ulPortInterruptNesting;
#define xPortIsInsideInterrupt() ( ulPortInterruptNesting != 0 )

#endif
