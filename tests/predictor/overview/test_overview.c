/* What the overview says of a machine, and of a model that knows it or not. The five networks are
 * asked for in tests/cli/cases/overview.cmd. */
#include "check.h"
#include "tmp.h"

#include <sys/stat.h>

#include "predictor/overview/overview.h"

static void put(tmp_dir *d, const char *path, const char *text) {
    char p[256], *s;
    snprintf(p, sizeof p, "%s", path);
    for (s = p; (s = strchr(s + 1, '/')) != NULL; *s = '/') {
        *s = 0;
        mkdir(tmp_path(d, p), 0700);
    }
    tmp_put(d, p, text, strlen(text));
}

TEST(machine) {
    tmp_dir d = tmp_make();
    cd_overview_machine m;
    cd_buf b = {0};
    put(&d, "proc/cpuinfo", "processor\t: 0\nmodel name\t: Abacus 9\n");
    put(&d, "proc/meminfo", "MemTotal:       8388608 kB\n");
    put(&d, "sys/devices/system/cpu/online", "0-3\n");
    put(&d, "proc/driver/nvidia/gpus/0000:3b:00.0/information",
        "Model: \t\t NVIDIA H200\nIRQ:   \t\t 7\n");
    put(&d, "proc/driver/nvidia/gpus/0000:5e:00.0/information", "Model: \t\t NVIDIA H200\n");
    put(&d, "proc/driver/nvidia/gpus/0000:af:00.0/information",
        "IRQ:   \t\t 7\n"); /* no name: not counted */
    cd_overview_machine_read(d.path, &m);
    assert_int_equal(m.n_gpu, 2);
    assert_string_equal(m.gpu[1].name, "NVIDIA H200");
    m.vectors = "AVX2";
    m.host.n_allowed = 2;
    cd_overview_machine_text(&m, &b);
    cd_buf_put(&b, "", 1);
    assert_string_equal(b.p, "This machine   Abacus 9, 4 logical cores (2 may be used), AVX2, 8 "
                             "GiB of memory\nGPUs           2 x NVIDIA H200\n");
    cd_buf_free(&b);
    tmp_remove(&d);
}

TEST(nothing_known) {
    cd_overview_machine m = {.host = {.n_cpu = -1, .n_allowed = -1, .memory_bytes = -1}};
    cd_buf b = {0};
    cd_overview_machine_text(&m, &b);
    cd_buf_put(&b, "", 1);
    assert_string_equal(b.p, "This machine   unknown processor\n");
    cd_buf_free(&b);
    cd_host_gpu g;
    assert_int_equal(cd_host_gpus_read("/nosuch", &g, 1), 0);
    cd_overview_free(&(cd_overview){0});
}

TESTS(NULL, NULL, machine, nothing_known)
