/* Counts the instructions that an emulated board executes, block by block: a plugin for QEMU 7.
 *
 * Counting begins anew whenever the board comes by the address `start`, and at the address `stop` what was counted is written to
 * the file `out`: a line for each block of instructions and each core that came by it, with its address, its length in instructions,
 * how often it was executed, and the core. Several cores (`cores`) are counted by calls instead of additions, which they would lose. `cargo xtask board NAME count` builds it and makes functions of the addresses.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is used of the emulator's interface for plugins, version 1; Debian ships no header with it. */
typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_info;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
extern void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
                                                  void (*translated)(qemu_plugin_id_t, struct qemu_plugin_tb *));
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, enum qemu_plugin_op op, void *counter,
                                                     uint64_t add);
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, void (*executed)(unsigned, void *),
                                                 enum qemu_plugin_cb_flags flags, void *data);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

enum { MOST_CORES = 4 };

struct block {
    struct block *next;
    uint64_t address;
    uint64_t instructions;
    /* By core: each counts for itself. */
    uint64_t executed[MOST_CORES];
};

static struct block *blocks;
static uint64_t start_address;
static uint64_t stop_address;
static const char *out_path;
static unsigned long cores = 1;

static void start(unsigned cpu, void *data)
{
    (void)cpu, (void)data;
    for (struct block *block = blocks; block != NULL; block = block->next) {
        memset(block->executed, 0, sizeof block->executed);
    }
}

static void stop(unsigned cpu, void *data)
{
    (void)cpu, (void)data;
    FILE *out = fopen(out_path, "w");
    if (out == NULL) {
        perror(out_path);
        return;
    }
    for (const struct block *block = blocks; block != NULL; block = block->next) {
        for (unsigned core = 0; core < MOST_CORES; core++) {
            if (block->executed[core] != 0) {
                fprintf(out, "%" PRIx64 " %" PRIu64 " %" PRIu64 " %u\n", block->address, block->instructions,
                        block->executed[core], core);
            }
        }
    }
    fclose(out);
}

static void executed(unsigned core, void *data)
{
    struct block *block = data;
    if (core < MOST_CORES) {
        block->executed[core]++;
    }
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    struct block *block = calloc(1, sizeof *block);
    if (block == NULL) {
        return;
    }
    block->address = qemu_plugin_tb_vaddr(tb);
    block->instructions = qemu_plugin_tb_n_insns(tb);
    /* Other cores may be at it, too. */
    block->next = __atomic_load_n(&blocks, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&blocks, &block->next, block, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
    if (cores == 1) {
        qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &block->executed[0], 1);
    } else {
        qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, QEMU_PLUGIN_CB_NO_REGS, block);
    }
    if (block->address == start_address) {
        qemu_plugin_register_vcpu_tb_exec_cb(tb, start, QEMU_PLUGIN_CB_NO_REGS, NULL);
    }
    if (block->address == stop_address) {
        qemu_plugin_register_vcpu_tb_exec_cb(tb, stop, QEMU_PLUGIN_CB_NO_REGS, NULL);
    }
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc,
                                                               char **argv)
{
    (void)info;
    for (int at = 0; at < argc; at++) {
        char *value = strchr(argv[at], '=');
        if (value == NULL) {
            fprintf(stderr, "count: %s: expected start=ADDRESS, stop=ADDRESS and out=FILE\n", argv[at]);
            return 1;
        }
        *value++ = '\0';
        if (strcmp(argv[at], "start") == 0) {
            start_address = strtoull(value, NULL, 0);
        } else if (strcmp(argv[at], "stop") == 0) {
            stop_address = strtoull(value, NULL, 0);
        } else if (strcmp(argv[at], "out") == 0) {
            out_path = strdup(value);
        } else if (strcmp(argv[at], "cores") == 0) {
            cores = strtoul(value, NULL, 0);
        }
    }
    if (start_address == 0 || stop_address == 0 || out_path == NULL) {
        fprintf(stderr, "count: start, stop and out are needed\n");
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
