# What rates.rs measures: loops over memory, here so that no compiler changes them. Each begins at a whole word, or a turn would take a clock
# more wherever the linker lays it at half of one.

    # a0: a place that leads to the next; a1: rounds of 32.
    .section .text.rates_chase, "ax"
    .globl rates_chase
    .type rates_chase, @function
    .balign 4
rates_chase:
    .rept 32
    lw   a0, 0(a0)
    .endr
    addi a1, a1, -1
    bnez a1, rates_chase
    ret
    .size rates_chase, . - rates_chase

    # From a0 to a1, lines of 32 bytes: their words are added.
    .section .text.rates_read, "ax"
    .globl rates_read
    .type rates_read, @function
    .balign 4
rates_read:
    lw   t0, 0(a0)
    lw   t1, 4(a0)
    lw   t2, 8(a0)
    lw   t3, 12(a0)
    lw   t4, 16(a0)
    lw   t5, 20(a0)
    lw   t6, 24(a0)
    lw   a2, 28(a0)
    add  a3, a3, t0
    add  a3, a3, t1
    add  a3, a3, t2
    add  a3, a3, t3
    add  a3, a3, t4
    add  a3, a3, t5
    add  a3, a3, t6
    add  a3, a3, a2
    addi a0, a0, 32
    bltu a0, a1, rates_read
    ret
    .size rates_read, . - rates_read

    # The same, filled with zeros.
    .section .text.rates_fill, "ax"
    .globl rates_fill
    .type rates_fill, @function
    .balign 4
rates_fill:
    sw   zero, 0(a0)
    sw   zero, 4(a0)
    sw   zero, 8(a0)
    sw   zero, 12(a0)
    sw   zero, 16(a0)
    sw   zero, 20(a0)
    sw   zero, 24(a0)
    sw   zero, 28(a0)
    addi a0, a0, 32
    bltu a0, a1, rates_fill
    ret
    .size rates_fill, . - rates_fill

    # The same, copied to a2: as memcpy does.
    .section .text.rates_copy, "ax"
    .globl rates_copy
    .type rates_copy, @function
    .balign 4
rates_copy:
    lw   t0, 0(a0)
    lw   t1, 4(a0)
    lw   t2, 8(a0)
    lw   t3, 12(a0)
    lw   t4, 16(a0)
    lw   t5, 20(a0)
    lw   t6, 24(a0)
    lw   a3, 28(a0)
    sw   t0, 0(a2)
    sw   t1, 4(a2)
    sw   t2, 8(a2)
    sw   t3, 12(a2)
    sw   t4, 16(a2)
    sw   t5, 20(a2)
    sw   t6, 24(a2)
    sw   a3, 28(a2)
    addi a0, a0, 32
    addi a2, a2, 32
    bltu a0, a1, rates_copy
    ret
    .size rates_copy, . - rates_copy
