# From reset to main: a trap vector, memory that begins as zero, a painted stack. The caches begin empty.

    .equ PAINT, 0xa5a5a5a5
    # Which interrupts end a sleep (none is ever taken): timer, and those of the array.
    .equ WAKING, 0x880
    # Those of the array: VexRiscv's register of its mask. Receive, transmit, keys.
    .equ ARRAY_MASK, 0xbc0
    .equ ALL_LINES, 0xb

    .section .start, "ax", @progbits
    .global _start
    .type _start, @function
_start:
    csrci   mstatus, 8
    # What the image begins with is kept,
    la      t0, __data_start
    la      t1, __data_end
    la      t2, __data_copy
4:  bgeu    t0, t1, begin
    lw      t3, (t0)
    sw      t3, (t2)
    addi    t0, t0, 4
    addi    t2, t2, 4
    j       4b

    # and is there again when it begins anew.
    .global _start_anew
_start_anew:
    csrci   mstatus, 8
    la      t0, __data_start
    la      t1, __data_end
    la      t2, __data_copy
5:  bgeu    t0, t1, begin
    lw      t3, (t2)
    sw      t3, (t0)
    addi    t0, t0, 4
    addi    t2, t2, 4
    j       5b

begin:
    la      t0, trap
    csrw    mtvec, t0
    la      t0, __fault_stack
    csrw    mscratch, t0
    li      t0, WAKING
    csrw    mie, t0
    li      t0, ALL_LINES
    csrw    ARRAY_MASK, t0
    la      t0, __bss_start
    la      t1, __bss_end
1:  bgeu    t0, t1, 2f
    sw      zero, (t0)
    addi    t0, t0, 4
    j       1b
2:  la      t0, __stack_end
    la      t1, __stack
    li      t2, PAINT
3:  sw      t2, (t0)
    addi    t0, t0, 4
    bltu    t0, t1, 3b
    la      sp, __stack
    call    main
    .size _start, . - _start

    # What comes here is an instruction that the core does not have, a fault, or the watchdog: no other interrupt is ever taken. Registers go to
    # board_trap(registers): the instruction's address, x1 to x31. It returns if execution goes on.
    .balign 4
    .type trap, @function
trap:
    csrrw   sp, mscratch, sp
    addi    sp, sp, -128
    .irp n, 1,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    sw      x\n, 4*\n(sp)
    .endr
    csrr    t0, mepc
    sw      t0, 0(sp)
    csrr    t0, mscratch
    sw      t0, 8(sp)
    mv      a0, sp
    call    board_trap
    lw      t0, 0(sp)
    csrw    mepc, t0
    lw      t0, 8(sp)
    csrw    mscratch, t0
    .irp n, 1,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    lw      x\n, 4*\n(sp)
    .endr
    addi    sp, sp, 128
    csrrw   sp, mscratch, sp
    mret
    .size trap, . - trap
