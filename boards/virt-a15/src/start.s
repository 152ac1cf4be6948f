@ From reset to main: translation, caches, vectors, vector unit, memory that begins as zero, a stack for each mode.

    .syntax unified
    .arm

    .equ MODE_FIQ,        0x11
    .equ MODE_IRQ,        0x12
    .equ MODE_SUPERVISOR, 0x13
    .equ MODE_ABORT,      0x17
    .equ MODE_UNDEFINED,  0x1b
    .equ IRQ_FIQ_MASKED,  0xc0

    @ A section of the translation table, 1 MiB. Memory is normal, write-back and write-allocate, shareable; code and constants
    @ may only be read and executed, all else only read and written.
    .equ SECTION_CODE,    0x1940e
    .equ SECTION_DATA,    0x11c1e
    .equ SECTION_DEVICE,  0x00c16
    @ Walks of the table are cached likewise.
    .equ WALKS,           0x4a

    @ The control register: caches, branch prediction and translation; alignment checks, high vectors and Thumb exceptions.
    .equ CONTROL_ON,      0x1805
    .equ CONTROL_OFF,     0x40002002
    @ The auxiliary one: this core takes part in coherency, without which an A15 does not cache what is shareable.
    .equ AUXILIARY_SMP,   0x40

    .section .start, "ax", %progbits
    .global _start
    .type _start, %function
_start:
    cpsid   aif
    cps     #MODE_IRQ
    ldr     sp, =__interrupt_stack
    cps     #MODE_FIQ
    ldr     sp, =__watchdog_stack
    @ Nothing returns from these two.
    cps     #MODE_ABORT
    ldr     sp, =__fault_stack
    cps     #MODE_UNDEFINED
    ldr     sp, =__fault_stack
    @ For main, and afterwards for interrupts, where FreeRTOS handles them in this mode, or for all that Embassy polls.
    cps     #MODE_SUPERVISOR
    ldr     sp, =__supervisor_stack

    @ The table: addresses as they are. What is neither memory nor device, page zero first of all, is a fault.
    ldr     r0, =__translation_table
    ldr     r4, =__code_start
    ldr     r5, =__code_end
    sub     r5, r5, r4
    lsr     r4, r4, #20
    lsr     r5, r5, #20
    mov     r1, #0
1:  mov     r2, #0
    @ 128 MiB of devices from 128 MiB on
    sub     r3, r1, #0x80
    cmp     r3, #0x80
    ldrlo   r2, =SECTION_DEVICE
    @ 128 MiB of memory from 1 GiB on
    sub     r3, r1, #0x400
    cmp     r3, #0x80
    ldrlo   r2, =SECTION_DATA
    sub     r3, r1, r4
    cmp     r3, r5
    ldrlo   r2, =SECTION_CODE
    cmp     r2, #0
    orrne   r2, r2, r1, lsl #20
    str     r2, [r0, r1, lsl #2]
    add     r1, r1, #1
    cmp     r1, #4096
    blo     1b

    mrc     p15, 0, r1, c1, c0, 1
    orr     r1, r1, #AUXILIARY_SMP
    mcr     p15, 0, r1, c1, c0, 1
    orr     r0, r0, #WALKS
    mcr     p15, 0, r0, c2, c0, 0
    mov     r1, #0
    mcr     p15, 0, r1, c2, c0, 2
    mov     r1, #1
    mcr     p15, 0, r1, c3, c0, 0
    @ Nothing of before: translations, instructions, branches. (Reset has emptied the data caches.)
    mcr     p15, 0, r1, c8, c7, 0
    mcr     p15, 0, r1, c7, c5, 0
    mcr     p15, 0, r1, c7, c5, 6
    dsb
    isb
    mrc     p15, 0, r1, c1, c0, 0
    ldr     r2, =CONTROL_OFF
    bic     r1, r1, r2
    ldr     r2, =CONTROL_ON
    orr     r1, r1, r2
    mcr     p15, 0, r1, c1, c0, 0
    isb
    ldr     r1, =vectors
    mcr     p15, 0, r1, c12, c0, 0

    @ The vector unit, with all its registers.
    mrc     p15, 0, r1, c1, c0, 2
    orr     r1, r1, #0x00f00000
    bic     r1, r1, #0xc0000000
    mcr     p15, 0, r1, c1, c0, 2
    isb
    mov     r1, #0x40000000
    vmsr    fpexc, r1

    ldr     r0, =__bss_start
    ldr     r1, =__bss_end
    mov     r2, #0
    mov     r3, #0
    mov     r4, #0
    mov     r5, #0
2:  cmp     r0, r1
    stmialo r0!, {r2-r5}
    blo     2b
    bl      main
3:  b       3b
    .size _start, . - _start
    .ltorg

    .balign 32
    .type vectors, %function
vectors:
    b       _start
    b       on_undefined
    b       on_call
    b       on_prefetch
    b       on_data
    b       on_reserved
    b       on_interrupt
    b       on_fiq
    .size vectors, . - vectors

    @ Stores the registers of the moment on the stack: r0 to r12, sp, lr, the instruction, CPSR. The vector was taken so many bytes
    @ behind the instruction.
    .macro store behind
    sub     lr, lr, #\behind
    sub     sp, sp, #72
    stmia   sp, {r0-r7}
    str     lr, [sp, #60]
    mrs     r0, spsr
    str     r0, [sp, #64]
    @ Stack pointer and link register of the mode that was interrupted, and what a fast interrupt has of its own.
    mrs     r1, cpsr
    and     r2, r0, #0x1f
    orr     r2, r2, #IRQ_FIQ_MASKED
    add     r3, sp, #32
    msr     cpsr_c, r2
    stmia   r3!, {r8-r12}
    str     sp, [r3]
    str     lr, [r3, #4]
    msr     cpsr_c, r1
    .endm

    @ Hands the registers of the moment to board_fault(kind, registers).
    .macro fault name, kind, behind
    .type \name, %function
\name:
    store   \behind
    mov     r0, #\kind
    mov     r1, sp
    bl      board_fault
    .size \name, . - \name
    .endm

    fault on_undefined, 0, 4
    fault on_prefetch, 1, 4
    fault on_data, 2, 8
    fault on_reserved, 3, 4

    @ The watchdog, which interrupts everything: board_watchdog(registers). r8 and up are this mode's own, or kept by what is called.
    .type on_fiq, %function
on_fiq:
    store   4
    mov     r0, sp
    bl      board_watchdog
    ldmia   sp, {r0-r7}
    ldr     lr, [sp, #60]
    add     sp, sp, #72
    movs    pc, lr
    .size on_fiq, . - on_fiq
