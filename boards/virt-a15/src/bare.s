@ Without FreeRTOS nobody calls the supervisor, and interrupts are handled one after the other, on the stack of their mode. What is called
@ has no use for the vector unit.

    .section .text.vectors, "ax", %progbits
    fault on_call, 3, 0

    .type on_interrupt, %function
on_interrupt:
    sub     lr, lr, #4
    push    {r0-r3, r12, lr}
    bl      board_interrupt
    ldm     sp!, {r0-r3, r12, pc}^
    .size on_interrupt, . - on_interrupt
