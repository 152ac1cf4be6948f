# memcpy for a core that loads and stores words at multiples of four alone. The compiler's own takes nine instructions a word, and far
# more where source and destination lie differently.

    .section .text.memcpy, "ax"
    .globl memcpy
    .type memcpy, @function
# a0 destination, which is returned; a1 source; a2 bytes. t6 is where the next byte goes, a3 the end of that.
memcpy:
    mv   t6, a0
    add  a3, a0, a2
    li   t0, 12
    bltu a2, t0, .Lbytes

    # To a multiple of four of the destination.
.Lhead:
    andi t0, t6, 3
    beqz t0, .Lbody
    lbu  t0, 0(a1)
    addi a1, a1, 1
    sb   t0, 0(t6)
    addi t6, t6, 1
    j    .Lhead

.Lbody:
    andi t0, a1, 3
    bnez t0, .Lshifted
    # Lines of the cache.
    addi t1, a3, -32
    bltu t1, t6, .Lwords
.Lline:
    lw   t0, 0(a1)
    lw   t2, 4(a1)
    lw   t3, 8(a1)
    lw   t4, 12(a1)
    lw   t5, 16(a1)
    lw   a4, 20(a1)
    lw   a5, 24(a1)
    lw   a6, 28(a1)
    sw   t0, 0(t6)
    sw   t2, 4(t6)
    sw   t3, 8(t6)
    sw   t4, 12(t6)
    sw   t5, 16(t6)
    sw   a4, 20(t6)
    sw   a5, 24(t6)
    sw   a6, 28(t6)
    addi a1, a1, 32
    addi t6, t6, 32
    bgeu t1, t6, .Lline
.Lwords:
    addi t1, a3, -4
    bltu t1, t6, .Lbytes
.Lword:
    lw   t0, 0(a1)
    addi a1, a1, 4
    sw   t0, 0(t6)
    addi t6, t6, 4
    bgeu t1, t6, .Lword
    j    .Lbytes

    # Words of the destination from two of the source each: t0 is by how many bits they are apart.
.Lshifted:
    mv   a7, t0
    sub  a1, a1, t0
    slli t0, t0, 3
    neg  t2, t0
    addi t1, a3, -4
    bltu t1, t6, .Lunshift
    lw   a4, 0(a1)
.Lpair:
    lw   a5, 4(a1)
    srl  a4, a4, t0
    sll  a6, a5, t2
    or   a4, a4, a6
    sw   a4, 0(t6)
    addi a1, a1, 4
    addi t6, t6, 4
    mv   a4, a5
    bgeu t1, t6, .Lpair
.Lunshift:
    add  a1, a1, a7

.Lbytes:
    bgeu t6, a3, .Ldone
.Lbyte:
    lbu  t0, 0(a1)
    addi a1, a1, 1
    sb   t0, 0(t6)
    addi t6, t6, 1
    bltu t6, a3, .Lbyte
.Ldone:
    ret
    .size memcpy, . - memcpy
