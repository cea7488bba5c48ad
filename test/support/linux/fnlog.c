// A TCG plugin that counts how often instructions are carried out by each CPU, by their addresses: an oracle that knows nothing of debuggers.
// Arguments: addrs=FILE with a hexadecimal address a line; out=FILE, "address count count ..." a line when QEMU ends,
// a count for each of eight CPUs. from=ADDRESS and until=ADDRESS: counted is what is carried out from the first time there on, up to the first time there.
// The interface is QEMU's docs/devel/tcg-plugins.rst, version 1, as far as it is used: no header needs to be there.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t id_t_;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
void qemu_plugin_register_vcpu_tb_trans_cb(id_t_, void (*)(id_t_, struct qemu_plugin_tb *));
void qemu_plugin_register_atexit_cb(id_t_, void (*)(id_t_, void *), void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, void (*)(unsigned, void *), int, void *);

int qemu_plugin_version = 1;

#define MOST 4096
#define CPUS 8
static struct { uint64_t address, counts[CPUS]; } places[MOST];
static int known;
static char out[4096];
static uint64_t from, until;
static int begun, over;

static void hit(unsigned cpu, void *counts)
{
    if (cpu < CPUS && !over)
        __atomic_add_fetch((uint64_t *)counts + cpu, 1, __ATOMIC_RELAXED);
}

static void begins(unsigned cpu, void *unused)
{
    if (!begun++)
        for (int k = 0; k < known; k++)
            memset(places[k].counts, 0, sizeof places[k].counts);
}

static void ends(unsigned cpu, void *unused)
{
    over = 1;
}

static void translated(id_t_ id, struct qemu_plugin_tb *block)
{
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(block, i);
        uint64_t address = qemu_plugin_insn_vaddr(insn);
        if (address == from || address == until)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, address == from ? begins : ends, 0, NULL);
        for (int k = 0; k < known; k++)
            if (places[k].address == address)
                qemu_plugin_register_vcpu_insn_exec_cb(insn, hit, 0, places[k].counts);
    }
}

static void ended(id_t_ id, void *unused)
{
    FILE *file = fopen(out, "w");
    if (!file)
        return;
    for (int k = 0; k < known; k++) {
        fprintf(file, "%llx", (unsigned long long)places[k].address);
        for (int cpu = 0; cpu < CPUS; cpu++)
            fprintf(file, " %llu", (unsigned long long)places[k].counts[cpu]);
        fprintf(file, "\n");
    }
    fclose(file);
}

int qemu_plugin_install(id_t_ id, const void *info, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        if (!strncmp(argv[i], "out=", 4))
            snprintf(out, sizeof out, "%s", argv[i] + 4);
        if (!strncmp(argv[i], "from=", 5))
            from = strtoull(argv[i] + 5, NULL, 16);
        if (!strncmp(argv[i], "until=", 6))
            until = strtoull(argv[i] + 6, NULL, 16);
        if (!strncmp(argv[i], "addrs=", 6)) {
            FILE *file = fopen(argv[i] + 6, "r");
            unsigned long long address;
            if (!file)
                return -1;
            while (known < MOST && fscanf(file, "%llx", &address) == 1)
                places[known++].address = address;
            fclose(file);
        }
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, 0);
    return 0;
}
