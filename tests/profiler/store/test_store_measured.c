/* What a process measures, as it stands in the store afterwards: whose times, under which name,
 * with which flags. */
#include <string.h>
#include <sys/utsname.h>

#include "base/io/io.h"
#include "check.h"
#include "profiler/describe/describe.h"
#include "profiler/host/host.h"
#include "profiler/store/store.h"
#include "tmp.h"

static cdmpp_err err;
static tmp_dir dir;
static char store_path[256], out_path[256];

static int set_up(void **state) {
    (void)state;
    dir = tmp_make();
    snprintf(out_path, sizeof out_path, "%s", tmp_path(&dir, "out.ndjson"));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    tmp_remove(&dir);
    return 0;
}

static cd_store_measured *open_it(cd_store_measured_options *o, const char *name) {
    cd_store_measured *k = NULL;
    snprintf(store_path, sizeof store_path, "%s", tmp_path(&dir, name));
    o->path = store_path;
    assert_ok(cd_store_measured_open(o, &k, &err));
    return k;
}

static void add(cd_store_measured *k, const char *target, unsigned flags, long line) {
    cd_arena a = {0};
    cd_record r;
    char text[512];
    const cd_measure_result m = {.flags = flags,
                                 .time = {.n = 5,
                                          .n_kept = 4,
                                          .min_s = 0.25,
                                          .median_s = 0.5,
                                          .mean_s = 0.75,
                                          .std_s = 0.125,
                                          .cv = 0.0625}};
    const int n =
        snprintf(text, sizeof text,
                 "{\"i\": [[\"[\\\"abcd\\\", 1]\", \"%s\", [-1, 16, 64, 49152, 2147483647, 1024, "
                 "8, 32], \"\", 0, []], [[], [[\"SP\", 3, 0, 64, [%ld], 1]]]], "
                 "\"r\": [[9.0], 0, 1.5, 1700000000], \"v\": \"v0.6\"}",
                 target, line);
    assert_ok(cd_record_read(&a, text, (size_t)n, &r, &err));
    assert_ok(cd_store_measured_add(k, &r, NULL, &m, line, &err));
    cd_arena_free(&a);
}

/* The line of the store's export for the record of that line. */
static void line_of(int line, char *out, size_t n) {
    static const volatile sig_atomic_t go = 0;
    char *text, want[40];
    size_t len, skipped;
    cd_store *s = NULL;
    assert_ok(cd_store_open(store_path, false, &s, &err));
    assert_ok(cd_store_export(s, &(cd_store_filter){.errors = true}, CD_STORE_EXPORT_JSON, out_path,
                              &go, &skipped, &err));
    cd_store_close(s);
    assert_ok(cd_file_read(out_path, 0, &text, &len, &err));
    snprintf(want, sizeof want, "\"line\":%d,", line);
    char *save;
    for (char *p = strtok_r(text, "\n", &save); p; p = strtok_r(NULL, "\n", &save))
        if (strstr(p, want)) {
            snprintf(out, n, "%s", p);
            cd_mem_free(text);
            return;
        }
    fail_msg("no line %d in the store", line);
}

static void has(const char *line, const char *what, const char *key) {
    char want[300];
    snprintf(want, sizeof want, "\"%s\":%s", key, what);
    if (!strstr(line, want)) fail_msg("no %s in %s", want, line);
}

static const char *quoted(const char *s) {
    static char text[200];
    snprintf(text, sizeof text, "\"%s\"", s);
    return text;
}

/* The times are those that were measured, not the record's; the machine is this one. */
TEST(this_machine) {
    cd_store_measured_options o = {.device = "T4 of the back end", .compiler = "-O3"};
    cd_store_measured *k = open_it(&o, "here.db");
    cd_describe_name cpu;
    cd_host_info h;
    struct utsname u;
    char line[4000];
    add(k, "llvm -mcpu=core-avx2", 0, 1);
    add(k, "cuda -model=unknown", CD_MEASURE_NOISY, 2);
    assert_ok(cd_store_measured_close(k, &err));
    cd_host_info_read("", &h);
    /* with the microarchitecture, where the processor's own name is that of several */
    assert_ok(cd_describe_name_cpu("", NULL, &cpu, &err));
    assert_int_equal(uname(&u), 0);
    line_of(1, line, sizeof line);
    has(line,
        "{\"min_s\":0.25,\"median_s\":0.5,\"mean_s\":0.75,\"std_s\":0.125,\"cv\":0.0625,\"n\":4,"
        "\"flags\":[]}",
        "latency");
    has(line, quoted(cpu.name), "device");
    has(line, quoted(u.nodename), "host");
    has(line, quoted(h.cpu), "cpu");
    has(line, quoted(h.kernel), "os");
    has(line, "\"-O3\"", "compiler");
    has(line, quoted("cdmpp-profile " CDMPP_VERSION), "tool");
    line_of(2, line, sizeof line);
    has(line, "\"T4 of the back end\"", "device");
    has(line, "[\"noisy\"]", "flags");
}

/* Cold caches; no name of a device; then another host, of which nothing but its name and processor
 * is known. */
TEST(another_host) {
    cd_store_measured_options o = {.cold = true};
    cd_store_measured *k = open_it(&o, "there.db");
    cd_describe_entry cpu;
    char line[4000];
    add(k, "opencl", CD_MEASURE_NOISY, 1);
    cd_store_measured_host(k, "board", "ARM Cortex-A72");
    add(k, "llvm -mcpu=core-avx2", 0, 2);
    add(k, "nonsense", 0, 3);
    assert_ok(cd_store_measured_close(k, &err));
    cd_describe_entry_init(&cpu, CD_DEVICE_CPU);
    cd_describe_entry_set_name(&cpu, "ARM Cortex-A72");
    line_of(1, line, sizeof line);
    has(line, "\"\"", "device");
    has(line, "[\"noisy\",\"cold\"]", "flags");
    for (int n = 2; n <= 3; n++) { /* a target that no back end knows is the processor's */
        line_of(n, line, sizeof line);
        has(line, quoted(cpu.name), "device");
        has(line,
            "{\"host\":\"board\",\"cpu\":\"ARM Cortex-A72\",\"tool\":\"cdmpp-profile " CDMPP_VERSION
            "\"}",
            "environment");
        has(line, "[\"cold\"]", "flags");
    }
}

/* Cores of one type are a device of their own, here and on another host. */
TEST(cores_of_a_type) {
    cd_store_measured_options o = {.core = "little", .device = "gpu"};
    cd_store_measured *k = open_it(&o, "cores.db");
    cd_describe_entry cpu;
    cd_describe_name own;
    char line[4000], want[128];
    add(k, "llvm", 0, 1);
    add(k, "cuda", 0, 2);
    cd_store_measured_host(k, "board", "ARM Cortex-A72");
    add(k, "llvm", 0, 3);
    assert_ok(cd_store_measured_close(k, &err));
    assert_ok(cd_describe_name_cpu("", NULL, &own, &err));
    snprintf(want, sizeof want, "%s-little", own.name);
    line_of(1, line, sizeof line);
    has(line, quoted(want), "device");
    line_of(2, line, sizeof line);
    has(line, "\"gpu\"", "device");
    cd_describe_entry_init(&cpu, CD_DEVICE_CPU);
    cd_describe_entry_set_name(&cpu, "ARM Cortex-A72");
    snprintf(want, sizeof want, "%s-little", cpu.name);
    line_of(3, line, sizeof line);
    has(line, quoted(want), "device");
}

TEST(refused) {
    cd_store_measured_options o = {.path = "/nowhere/s.db"};
    cd_store_measured *k = NULL;
    assert_status(cd_store_measured_open(&o, &k, &err), CDMPP_EIO);
    assert_null(k);
    assert_ok(cd_store_measured_close(NULL, &err));
}

TESTS(set_up, tear_down, this_machine, another_host, cores_of_a_type, refused)
