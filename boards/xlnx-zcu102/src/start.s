// From reset to main: exception level 1, translation, caches, vectors, memory that begins as zero, painted stacks. The other
// cores come the same way, to core_main.

    // Entries of the translation table, blocks of 2 MiB and 1 GiB. Memory is shareable; code and constants may only be read
    // and executed, all else only read and written.
    .equ BLOCK_CODE,     0x0040000000000785
    .equ BLOCK_DATA,     0x0060000000000705
    .equ BLOCK_UNCACHED, 0x0060000000000709
    .equ BLOCK_DEVICE,   0x0060000000000401
    .equ TABLE,          3
    // Attributes 0, 1, 2: devices, memory with caches (write-back, allocating), memory without.
    .equ ATTRIBUTES,     0x0044ff04
    // Addresses of 32 bits by pages of 4 KiB, whose tables are cached and shareable; 40 bits come out.
    .equ TRANSLATION,    0x0000000200803520
    // The control register: its fixed bits, stack alignment; then translation and both caches.
    .equ CONTROL,        0x30d00808
    .equ CONTROL_ON,     0x30d0180d
    // What the lower level begins with: masked, with a stack pointer of its own.
    .equ LEVEL_1,        0x3c5
    .equ CORES,          4
    .equ STACK_SHIFT,    18
    .equ FAULT_STACK_SHIFT, 14
    .equ PAINT,          0xa5a5a5a5a5a5a5a5

    .section .start, "ax", %progbits
    .global _start
    .type _start, %function
_start:
    msr     daifset, #15
    // Which core comes by, and at which level it began: x19 is nobody else's before main.
    mrs     x0, mpidr_el1
    and     x0, x0, #0xff
    cbnz    x0, park
    mov     x20, #0
    b       lower

    // Where the other cores begin, once the first has everything in place.
    .global _start_core
    .type _start_core, %function
_start_core:
    msr     daifset, #15
    mrs     x0, mpidr_el1
    and     x20, x0, #0xff
    cmp     x20, #CORES
    b.hs    park

lower:
    mrs     x19, CurrentEL
    lsr     x19, x19, #2
    cmp     x19, #2
    b.eq    from_2
    b.lo    at_1

    // From level 3, without a monitor: level 1 of the secure world, where the interrupt controller is this image's. What a
    // monitor would have done: this core's caches take part in what the others' hold (SMPEN of CPUECTLR_EL1).
    mrs     x0, S3_1_C15_C2_1
    orr     x0, x0, #0x40
    msr     S3_1_C15_C2_1, x0
    isb
    mov     x0, #0xc30
    msr     scr_el3, x0
    msr     cptr_el3, xzr
    mov     x0, #LEVEL_1
    msr     spsr_el3, x0
    adr     x0, at_1
    msr     elr_el3, x0
    b       down

from_2:
    mov     x0, #0x80000000
    msr     hcr_el2, x0
    mrs     x0, cnthctl_el2
    orr     x0, x0, #3
    msr     cnthctl_el2, x0
    msr     cntvoff_el2, xzr
    mov     x0, #0x33ff
    msr     cptr_el2, x0
    mov     x0, #LEVEL_1
    msr     spsr_el2, x0
    adr     x0, at_1
    msr     elr_el2, x0
down:
    ldr     x0, =CONTROL
    msr     sctlr_el1, x0
    isb
    eret

at_1:
    // The other stack pointer is that of faults. Each core has both for itself; a stack grows down.
    add     x1, x20, #1
    msr     spsel, #0
    ldr     x0, =__fault_stacks
    add     x0, x0, x1, lsl #FAULT_STACK_SHIFT
    mov     sp, x0
    msr     spsel, #1
    ldr     x0, =__stacks
    add     x0, x0, x1, lsl #STACK_SHIFT
    mov     sp, x0
    ldr     x0, =vectors
    msr     vbar_el1, x0
    mov     x0, #0x300000
    msr     cpacr_el1, x0
    ldr     x0, =__translation_table
    cbnz    x20, translate

    // The first table has four entries: memory by blocks, nothing, nothing, devices.
    add     x1, x0, #4096
    orr     x2, x1, #TABLE
    stp     x2, xzr, [x0]
    ldr     x2, =BLOCK_DEVICE | 0xc0000000
    stp     xzr, x2, [x0, #16]
    ldr     x3, =__code_start
    ldr     x4, =__code_end
    ldr     x5, =__uncached_start
    ldr     x6, =__uncached_end
    mov     x7, #0
1:  mov     x2, #0
    cmp     x7, x3
    b.lo    2f
    ldr     x2, =BLOCK_CODE
    cmp     x7, x4
    b.lo    2f
    ldr     x2, =BLOCK_DATA
    cmp     x7, x5
    b.lo    2f
    ldr     x2, =BLOCK_UNCACHED
    cmp     x7, x6
    b.lo    2f
    mov     x2, #0
2:  cmp     x2, #0
    orr     x8, x2, x7
    csel    x2, x8, xzr, ne
    str     x2, [x1], #8
    add     x7, x7, #0x200000
    lsr     x8, x7, #30
    cbz     x8, 1b

    // Every core goes by the same table.
translate:
    ldr     x1, =ATTRIBUTES
    msr     mair_el1, x1
    ldr     x1, =TRANSLATION
    msr     tcr_el1, x1
    msr     ttbr0_el1, x0
    dsb     sy
    // Nothing of before: translations, instructions. (Reset, or whoever loaded this, has emptied the data caches.)
    tlbi    vmalle1
    ic      iallu
    dsb     sy
    isb
    ldr     x1, =CONTROL_ON
    msr     sctlr_el1, x1
    isb
    cbnz    x20, core

    ldr     x0, =__bss_start
    ldr     x1, =__bss_end
    bl      clear
    ldr     x0, =__uncached_start
    ldr     x1, =__kept
    bl      clear
    ldr     x0, =__stacks
    ldr     x1, =__stacks_end
    ldr     x2, =PAINT
3:  stp     x2, x2, [x0], #16
    cmp     x0, x1
    b.lo    3b
    mov     x0, x19
    bl      main
    // Another core: memory is in place.
core:
    mov     x0, x20
    bl      core_main
park:
    wfe
    b       park
    .size _start, . - _start

    .type clear, %function
clear:
    cmp     x0, x1
    b.hs    1f
    stp     xzr, xzr, [x0], #16
    b       clear
1:  ret
    .size clear, . - clear
    .ltorg

    // Registers to or from where they lie in a report: x2 to x17, x18 to x29, and behind it q0 to q31.
    .macro low_x op
    \op    x2, x3, [sp, #16]
    \op    x4, x5, [sp, #32]
    \op    x6, x7, [sp, #48]
    \op    x8, x9, [sp, #64]
    \op    x10, x11, [sp, #80]
    \op    x12, x13, [sp, #96]
    \op    x14, x15, [sp, #112]
    \op    x16, x17, [sp, #128]
    .endm
    .macro high_x op
    \op    x18, x19, [sp, #144]
    \op    x20, x21, [sp, #160]
    \op    x22, x23, [sp, #176]
    \op    x24, x25, [sp, #192]
    \op    x26, x27, [sp, #208]
    \op    x28, x29, [sp, #224]
    .endm
    .macro all_q op
    \op    q0, q1, [sp, #288]
    \op    q2, q3, [sp, #320]
    \op    q4, q5, [sp, #352]
    \op    q6, q7, [sp, #384]
    \op    q8, q9, [sp, #416]
    \op    q10, q11, [sp, #448]
    \op    q12, q13, [sp, #480]
    \op    q14, q15, [sp, #512]
    \op    q16, q17, [sp, #544]
    \op    q18, q19, [sp, #576]
    \op    q20, q21, [sp, #608]
    \op    q22, q23, [sp, #640]
    \op    q24, q25, [sp, #672]
    \op    q26, q27, [sp, #704]
    \op    q28, q29, [sp, #736]
    \op    q30, q31, [sp, #768]
    .endm

    // No interrupt is ever taken but that of the watchdog: what else comes here is a fault. Its registers go to board_fault(which, registers): x0 to x30, sp,
    // the instruction, PSTATE, the syndrome, the address.
    .macro vector number
    .balign 128
    msr     tpidr_el1, x0
    mov     x0, sp
    msr     spsel, #0
    sub     sp, sp, #288
    stp     x30, x0, [sp, #240]
    mov     x0, #\number
    b       fault
    .endm

    .balign 2048
    .type vectors, %function
vectors:
    .altmacro
    .set which, 0
    .rept 16
    .if which == 5
    // An interrupt at this level.
    .balign 128
    b       on_interrupt
    .else
    vector  %which
    .endif
    .set which, which + 1
    .endr
    .size vectors, . - vectors

    .type fault, %function
fault:
    low_x   stp
    high_x  stp
    mrs     x2, tpidr_el1
    stp     x2, x1, [sp]
    mrs     x2, elr_el1
    mrs     x3, spsr_el1
    stp     x2, x3, [sp, #256]
    mrs     x2, esr_el1
    mrs     x3, far_el1
    stp     x2, x3, [sp, #272]
    mov     x1, sp
    bl      board_fault
    .size fault, . - fault

    // The watchdog of this core, on the stack of the loop: board_watchdog(registers), with registers as above.
    .type on_interrupt, %function
on_interrupt:
    sub     sp, sp, #816
    stp     x0, x1, [sp]
    low_x   stp
    high_x  stp
    add     x0, sp, #816
    stp     x30, x0, [sp, #240]
    mrs     x0, elr_el1
    mrs     x1, spsr_el1
    stp     x0, x1, [sp, #256]
    stp     xzr, xzr, [sp, #272]
    all_q   stp
    mrs     x0, fpcr
    mrs     x1, fpsr
    str     x0, [sp, #800]
    str     x1, [sp, #808]
    mov     x0, sp
    bl      board_watchdog
    ldr     x0, [sp, #800]
    ldr     x1, [sp, #808]
    msr     fpcr, x0
    msr     fpsr, x1
    all_q   ldp
    ldp     x0, x1, [sp]
    low_x   ldp
    ldr     x18, [sp, #144]
    ldr     x30, [sp, #240]
    add     sp, sp, #816
    eret
    .size on_interrupt, . - on_interrupt
