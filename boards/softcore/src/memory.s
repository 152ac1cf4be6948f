# memcpy and memcmp for a core that loads and stores words at multiples of four alone. The compiler's own copy takes nine instructions a word,
# and far more where source and destination lie differently; its own comparison goes byte by byte.

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

    .section .text.memcmp, "ax"
    .globl memcmp
    .type memcmp, @function
# a0 and a1 what is compared, of a2 bytes. a3 is the end of a0.
memcmp:
    add  a3, a0, a2
    li   t0, 8
    bltu a2, t0, .Lcmp_bytes

    # To a multiple of four of the first.
.Lcmp_head:
    andi t0, a0, 3
    beqz t0, .Lcmp_body
    lbu  t1, 0(a0)
    lbu  t2, 0(a1)
    bne  t1, t2, .Lcmp_differ
    addi a0, a0, 1
    addi a1, a1, 1
    j    .Lcmp_head

.Lcmp_body:
    addi t3, a3, -4
    bltu t3, a0, .Lcmp_bytes
    andi t0, a1, 3
    bnez t0, .Lcmp_shifted
.Lcmp_word:
    lw   t1, 0(a0)
    lw   t2, 0(a1)
    addi a0, a0, 4
    addi a1, a1, 4
    bne  t1, t2, .Lcmp_words_differ
    bgeu t3, a0, .Lcmp_word
    j    .Lcmp_bytes

    # Words of the first with two of the second each: t0 is by how many bits they are apart.
.Lcmp_shifted:
    mv   a7, t0
    sub  a1, a1, t0
    slli t0, t0, 3
    neg  t4, t0
    lw   a4, 0(a1)
.Lcmp_pair:
    lw   a5, 4(a1)
    lw   t1, 0(a0)
    srl  t2, a4, t0
    sll  a6, a5, t4
    or   t2, t2, a6
    addi a0, a0, 4
    addi a1, a1, 4
    bne  t1, t2, .Lcmp_words_differ
    mv   a4, a5
    bgeu t3, a0, .Lcmp_pair
    add  a1, a1, a7

.Lcmp_bytes:
    bgeu a0, a3, .Lcmp_equal
.Lcmp_byte:
    lbu  t1, 0(a0)
    lbu  t2, 0(a1)
    bne  t1, t2, .Lcmp_differ
    addi a0, a0, 1
    addi a1, a1, 1
    bltu a0, a3, .Lcmp_byte
.Lcmp_equal:
    li   a0, 0
    ret

    # The first byte that differs is the lowest.
.Lcmp_words_differ:
    andi t4, t1, 255
    andi t5, t2, 255
    bne  t4, t5, .Lcmp_differ_in
    srli t1, t1, 8
    srli t2, t2, 8
    j    .Lcmp_words_differ
.Lcmp_differ_in:
    sub  a0, t4, t5
    ret
.Lcmp_differ:
    sub  a0, t1, t2
    ret
    .size memcmp, . - memcmp
