@ FreeRTOS takes calls and interrupts.

    .section .text.vectors, "ax", %progbits
    .type on_call, %function
on_call:
    b       FreeRTOS_SWI_Handler
    .type on_interrupt, %function
on_interrupt:
    b       FreeRTOS_IRQ_Handler
