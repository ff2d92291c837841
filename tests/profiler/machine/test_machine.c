/* Machines: what is written is read again, what is wrong is refused with its place, devices are
 * chosen by name. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "fault.h"
#include "base/io/io.h"
#include "profiler/machine/machine.h"
#include "tmp.h"

static cdmpp_err err;

static const char good[] =
    "{\"cdmpp_machine\": 1, \"devices\": ["
    "{\"name\": \"cpu0\", \"kind\": \"cpu\", \"core\": 0, \"target\": \"llvm -mcpu=x\", \"as\": "
    "\"granite\", \"launch_s\": 2e-7, \"sync_s\": 1e-6},"
    "{\"name\": \"ocl0\", \"kind\": \"native\", \"opencl\": \"pocl:0/2.1\", \"core\": 1, "
    "\"scale\": 1.5, \"times\": 3, \"memory\": 1, \"launch_s\": 4e-6, \"sync_s\": 2e-6, "
    "\"wake_s\": 2e-5, \"mem_gb\": 0.5},"
    "{\"name\": \"t4\", \"kind\": \"model\", \"as\": \"t4\", \"memory\": 2, \"launch_s\": 5e-6, "
    "\"sync_s\": 1e-5}],"
    "\"links\": [{\"from\": \"cpu0\", \"to\": \"ocl0\", \"how\": \"write\", \"n\": 9, \"noise\": "
    "0.1, \"pieces\": [[0, 1e-6, 1e-10]]},"
    "{\"from\": \"cpu0\", \"to\": \"cpu0\", \"how\": \"copy\", \"n\": 9, \"noise\": 0.1, "
    "\"pieces\": [[0, 1e-8, 1e-10]]},"
    "{\"from\": \"t4\", \"to\": \"cpu0\", \"how\": \"read\", \"n\": 9, \"noise\": 0, \"pieces\": "
    "[[0, 1e-5, 2e-10]]}],"
    "\"contention\": {\"peak_bytes_per_s\": 1e10, \"beside\": 1.02, \"turn\": 2, \"pairs\": 21, "
    "\"error\": 0.05}}";

static cdmpp_status read_text(cd_machine *m, const char *text) {
    tmp_dir dir = tmp_make();
    const char *path = tmp_path(&dir, "m.json");
    memset(&err, 0, sizeof err);
    assert_ok(cd_file_write(path, text, strlen(text), &err));
    cd_machine_init(m);
    const cdmpp_status st = cd_machine_read(m, path, &err);
    if (st) assert_true(strstr(err.path, "m.json") != NULL);
    tmp_remove(&dir);
    return st;
}

static void test_read(void **state) {
    (void)state;
    cd_machine m;
    assert_ok(read_text(&m, good));
    assert_int_equal(m.n, 3);
    assert_int_equal(cd_machine_find(&m, "ocl0"), 1);
    assert_true(cd_machine_find(&m, "ocl") == UINT32_MAX);
    assert_true(m.device[0].wake_s == 0 && m.device[1].wake_s == 2e-5 && m.device[0].mem_gb == 0 &&
                m.device[1].mem_gb == 0.5);
    assert_true(m.device[0].scale == 1 && m.device[0].times == 1 && m.device[0].memory == 0 &&
                !m.device[0].opencl);
    assert_true(m.device[1].scale == 1.5 && m.device[1].times == 3 && m.device[1].memory == 1 &&
                m.device[1].core == 1);
    assert_string_equal(m.device[1].opencl, "pocl:0/2.1");
    assert_int_equal(m.device[2].core, -1);
    static const struct {
        const char *name, *kind, *opencl, *target, *as;
        double launch_s, sync_s;
    } want[] = {{"cpu0", "cpu", NULL, "llvm -mcpu=x", "granite", 2e-7, 1e-6},
                {"ocl0", "native", "pocl:0/2.1", NULL, NULL, 4e-6, 2e-6},
                {"t4", "model", NULL, NULL, "t4", 5e-6, 1e-5}};
    for (int k = 0; k < 3; k++) {
        const cd_machine_device *d = &m.device[k];
        const char *const text[][2] = {{d->name, want[k].name},
                                       {d->kind, want[k].kind},
                                       {d->opencl, want[k].opencl},
                                       {d->target, want[k].target},
                                       {d->as, want[k].as}};
        for (size_t i = 0; i < sizeof text / sizeof *text; i++)
            if (!text[i][0] != !text[i][1] || (text[i][0] && strcmp(text[i][0], text[i][1])))
                fail_msg("device %d: '%s', not '%s'", k, text[i][0] ? text[i][0] : "",
                         text[i][1] ? text[i][1] : "");
        assert_true(d->launch_s == want[k].launch_s && d->sync_s == want[k].sync_s);
    }
    assert_int_equal(m.links.n, 3);
    assert_true(m.contention.peak_bytes_per_s == 1e10 && m.contention.turn == 2 &&
                m.contention.error == 0.05);
    assert_true(m.contention.beside == 1.02 && m.contention.n_pair == 21);
    cd_machine_free(&m);
}

static void test_written_and_read(void **state) {
    (void)state;
    cd_machine m, r;
    cd_buf a = {0}, b = {0};
    tmp_dir dir = tmp_make();
    const char *path = tmp_path(&dir, "m.json");
    assert_ok(read_text(&m, good));
    assert_ok(cd_machine_write(&m, path, &err));
    cd_machine_init(&r);
    assert_ok(cd_machine_read(&r, path, &err));
    cd_machine_print(&m, &a);
    cd_machine_print(&r, &b);
    assert_string_equal(a.p, b.p);
    assert_true(r.device[1].scale == m.device[1].scale &&
                r.device[1].launch_s == m.device[1].launch_s && r.device[1].times == 3);
    assert_true(r.contention.peak_bytes_per_s == m.contention.peak_bytes_per_s &&
                r.contention.error == m.contention.error);
    cd_buf_free(&a);
    cd_buf_free(&b);
    cd_machine_free(&m);
    cd_machine_free(&r);
    tmp_remove(&dir);
}

/* Without links and contention there are none after it. */
static void test_bare(void **state) {
    (void)state;
    cd_machine m, r;
    cd_buf b = {0};
    assert_ok(read_text(&m, "{\"cdmpp_machine\": 1, \"devices\": [{\"name\": \"a\", \"kind\": "
                            "\"cpu\", \"launch_s\": 0, \"sync_s\": 0}]}"));
    cd_machine_print(&m, &b);
    assert_ok(read_text(&r, b.p));
    assert_true(r.n == 1 && r.links.n == 0 && r.contention.beside == 0);
    /* nobody disturbs */
    assert_true(cd_contention_slow(&r.contention, 1, 2, 1, false) == 1 &&
                cd_contention_slow(&r.contention, 1, 2, 1, true) == 1);
    cd_buf_free(&b);
    cd_machine_free(&m);
    cd_machine_free(&r);
}

/* How noisy the machine was when it was measured stays with the description, and with devices that
 * are chosen from it. */
static void test_noise(void **state) {
    (void)state;
    static const char form[] = "{\"cdmpp_machine\": 1, \"devices\": [{\"name\": \"a\", \"kind\": "
                               "\"cpu\", \"launch_s\": 0, \"sync_s\": 0}], \"noise\": %s}";
    static const struct {
        const char *noise;
        double spread, others;
        bool kept;
    } good_ones[] = {
        {"{\"spread\": 0.25, \"others\": 0.125, \"figure\": \"launch_s\"}", 0.25, 0.125, false},
        {"{\"spread\": 2, \"kept\": true}", 2, -1, true},
        {"{\"spread\": 0, \"others\": 0, \"kept\": false}", 0, 0, false}};
    static const char *const bad[] = {"{}", "3", "{\"spread\": -1}",
                                      "{\"spread\": 0, \"others\": 1.5}",
                                      "{\"spread\": 0, \"kept\": 1}"};
    char text[400];
    cd_machine m, r, some;
    for (size_t k = 0; k < sizeof good_ones / sizeof *good_ones; k++) {
        cd_buf b = {0};
        snprintf(text, sizeof text, form, good_ones[k].noise);
        assert_ok(read_text(&m, text));
        cd_machine_print(&m, &b);
        assert_ok(read_text(&r, b.p));
        assert_ok(cd_machine_choose(&r, "a", &some, &err));
        const cd_machine *const all[] = {&m, &r, &some};
        for (int i = 0; i < 3; i++) {
            assert_true(all[i]->measured && all[i]->kept == good_ones[k].kept &&
                        all[i]->noise.spread == good_ones[k].spread);
            assert_true(good_ones[k].others < 0 ? all[i]->noise.others != all[i]->noise.others
                                                : all[i]->noise.others == good_ones[k].others);
        }
        cd_buf_free(&b);
        cd_machine_free(&m), cd_machine_free(&r), cd_machine_free(&some);
    }
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        snprintf(text, sizeof text, form, bad[k]);
        assert_true(read_text(&m, text) == CDMPP_ESCHEMA || err.code == CDMPP_ERANGE);
        assert_non_null(strstr(err.key, "noise"));
        cd_machine_free(&m);
    }
}

static void test_choose(void **state) {
    (void)state;
    cd_machine m, c;
    assert_ok(read_text(&m, good));
    assert_ok(cd_machine_choose(&m, "ocl0,cpu0", &c, &err));
    assert_int_equal(c.n, 2);
    assert_string_equal(c.device[0].name, "ocl0");
    assert_int_equal(c.links.n, 2); /* that from t4 is left out */
    assert_non_null(cd_link_table_find(&c.links, "cpu0", "ocl0"));
    assert_non_null(cd_link_table_find(&c.links, "cpu0", "cpu0"));
    assert_true(c.contention.turn == 2);
    cd_machine_free(&m); /* nothing is shared */
    assert_string_equal(c.device[1].as, "granite");
    cd_machine_free(&c);
    assert_ok(read_text(&m, good));
    assert_status(cd_machine_choose(&m, "cpu0,k80", &c, &err), CDMPP_ESCHEMA);
    assert_non_null(strstr(err.msg, "'k80'; there are cpu0, ocl0, t4"));
    cd_machine_free(&c);
    assert_status(cd_machine_choose(&m, "cpu0,cpu0", &c, &err), CDMPP_EINVALID);
    cd_machine_free(&c);
    assert_status(cd_machine_choose(&m, "", &c, &err), CDMPP_ESCHEMA);
    cd_machine_free(&c);
    assert_status(cd_machine_choose(&m, "cpu0,", &c, &err), CDMPP_ESCHEMA);
    cd_machine_free(&c);
    cd_machine_free(&m);
}

/* A message has room for a list of 159 letters: not one more, whatever is behind it. */
static void test_list_of_names_is_cut(void **state) {
    (void)state;
    cd_machine m, c;
    cd_buf all = {0};
    cd_machine_init(&m);
    for (int k = 0; k < 4; k++) {
        char name[64];
        snprintf(name, sizeof name, "device-with-a-name-of-about-fifty-letters-number-%d", k);
        cd_buf_putf(&all, "%s%s", k ? ", " : "", name);
        assert_ok(cd_machine_add(
            &m, &(cd_machine_device){.name = name, .kind = "cpu", .core = -1, .scale = 1}, &err));
    }
    assert_status(cd_machine_choose(&m, "k80", &c, &err), CDMPP_ESCHEMA);
    const char *list = strstr(err.msg, "there are ");
    assert_non_null(list);
    assert_int_equal(strlen(list), 10 + 159);
    assert_memory_equal(list + 10, all.p, 159);
    cd_buf_free(&all);
    cd_machine_free(&c);
    cd_machine_free(&m);
}

#define DEVICE(x)                                                                                  \
    "{\"cdmpp_machine\": 1, \"devices\": [{\"name\": \"a\", \"kind\": \"cpu\", \"launch_s\": 0, "  \
    "\"sync_s\": 0" x "}]}"
#define LINK(x)                                                                                    \
    "{\"cdmpp_machine\": 1, \"devices\": [{\"name\": \"a\", \"kind\": \"cpu\", \"launch_s\": 0, "  \
    "\"sync_s\": 0}], \"links\": [" x "]}"

static void test_bad(void **state) {
    (void)state;
    static const struct {
        const char *text;
        cdmpp_status want;
        const char *has; /* in key or message */
    } bad[] = {
        {"", CDMPP_EPARSE, ""},
        {"{", CDMPP_EPARSE, ""},
        {"[]", CDMPP_ESCHEMA, "cdmpp_machine"},
        {"{\"cdmpp_machine\": 2, \"devices\": []}", CDMPP_ERANGE, "cdmpp_machine"},
        {"{\"cdmpp_machine\": 1}", CDMPP_ESCHEMA, "devices"},
        {"{\"cdmpp_machine\": 1, \"devices\": []}", CDMPP_ESCHEMA, "devices"},
        {"{\"cdmpp_machine\": 1, \"devices\": [{\"kind\": \"cpu\"}]}", CDMPP_ESCHEMA,
         "devices[0].name"},
        {"{\"cdmpp_machine\": 1, \"devices\": [{\"name\": \"a\", \"kind\": \"cpu\", \"sync_s\": "
         "0}]}",
         CDMPP_ESCHEMA, "launch_s"},
        {DEVICE(", \"scale\": 0"), CDMPP_EINVALID, "scale"},
        {DEVICE(", \"scale\": -1"), CDMPP_ERANGE, "scale"},
        {DEVICE(", \"scale\": NaN"), CDMPP_EPARSE, ""},
        {DEVICE(", \"scale\": 1e999"), CDMPP_ERANGE, "scale"},
        {DEVICE(", \"scale\": \"1\""), CDMPP_ESCHEMA, "scale"},
        {DEVICE(", \"times\": 0"), CDMPP_ERANGE, "times"},
        {DEVICE(", \"core\": 1.5"), CDMPP_ESCHEMA, "core"},
        {DEVICE(", \"memory\": -1"), CDMPP_ERANGE, "memory"},
        {DEVICE(", \"opencl\": \"0\""), CDMPP_EINVALID, "cannot have"},
        {DEVICE(", \"as\": \"a\\u0000b\""), CDMPP_EPARSE, "expected no \\u0000"},
        {"{\"cdmpp_machine\": 1, \"devices\": [{\"name\": \"a\", \"kind\": \"tpu\", \"launch_s\": "
         "0, \"sync_s\": 0}]}",
         CDMPP_EINVALID, "tpu"},
        {"{\"cdmpp_machine\": 1, \"devices\": [{\"name\": \"a\", \"kind\": \"opencl\", "
         "\"launch_s\": 0, \"sync_s\": 0}]}",
         CDMPP_EINVALID, "needs"},
        {"{\"cdmpp_machine\": 1, \"devices\": [{\"name\": \"a*/evil;/*\", \"kind\": \"cpu\", "
         "\"launch_s\": 0, \"sync_s\": 0}]}",
         CDMPP_EINVALID, "a*/evil;/*"},
        {"{\"cdmpp_machine\": 1, \"devices\": [{\"name\": \"a<b\", \"kind\": \"cpu\", "
         "\"launch_s\": 0, \"sync_s\": 0}]}",
         CDMPP_EINVALID, "a<b"},
        {"{\"cdmpp_machine\": 1, \"devices\": [{\"name\": \"a\\\"b\", \"kind\": \"cpu\", "
         "\"launch_s\": 0, \"sync_s\": 0}]}",
         CDMPP_EINVALID, "letters, digits"},
        {"{\"cdmpp_machine\": 1, \"devices\": [{\"name\": \"a,b\", \"kind\": \"cpu\", "
         "\"launch_s\": 0, \"sync_s\": 0}]}",
         CDMPP_EINVALID, "a,b"},
        {"{\"cdmpp_machine\": 1, \"devices\": [{\"name\": \"a\", \"kind\": \"cpu\", \"launch_s\": "
         "0, \"sync_s\": 0},"
         "{\"name\": \"a\", \"kind\": \"cpu\", \"launch_s\": 0, \"sync_s\": 0}]}",
         CDMPP_EINVALID, "two devices are called a"},
        {LINK("{\"from\": \"a\", \"to\": \"b\", \"how\": \"w\", \"n\": 3, \"noise\": 0, "
              "\"pieces\": [[0, 1, 1]]}"),
         CDMPP_ESCHEMA, "no device 'b'"},
        {LINK("{\"from\": \"a\", \"to\": \"a\", \"how\": \"w\", \"n\": 3, \"noise\": 0, "
              "\"pieces\": [[5, 1, 1]]}"),
         CDMPP_EINVALID, "links[0]"},
        {"{\"cdmpp_machine\": 1, \"devices\": [{\"name\": \"a\", \"kind\": \"cpu\", \"launch_s\": "
         "0, \"sync_s\": 0}], \"contention\": {\"peak_bytes_per_s\": 1, \"beside\": 0.5, \"turn\": "
         "2}}",
         CDMPP_ERANGE, "contention.beside"},
    };
    cd_machine m;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[600];
        assert_status(read_text(&m, bad[i].text), bad[i].want);
        if (!strstr(cdmpp_err_format(&err, text, sizeof text), bad[i].has))
            fail_msg("%zu: %s", i, text);
        cd_machine_free(&m);
    }
    cd_machine_init(&m);
    assert_status(cd_machine_read(&m, "/nowhere/m.json", &err), CDMPP_EIO);
    cd_machine_free(&m);
}

static void test_add(void **state) {
    (void)state;
    cd_machine m;
    cd_machine_init(&m);
    cd_machine_device d = {.name = "x", .kind = "cpu", .core = -1, .scale = 1};
    d.launch_s = (double)NAN;
    assert_status(cd_machine_add(&m, &d, &err), CDMPP_EINVALID);
    d.launch_s = 0;
    for (int i = 0; i < CD_MACHINE_DEVICES; i++) {
        char name[24];
        snprintf(name, sizeof name, "d%d", i);
        d.name = name; /* copied */
        assert_ok(cd_machine_add(&m, &d, &err));
    }
    assert_int_equal(cd_machine_find(&m, "d3"), 3);
    assert_int_equal(m.device[3].times, 1);
    d.name = "one more";
    assert_status(cd_machine_add(&m, &d, &err), CDMPP_EINVALID); /* a blank */
    d.name = "more";
    assert_status(cd_machine_add(&m, &d, &err), CDMPP_ERANGE);
    cd_machine_free(&m);
}

/* Every allocation of reading, choosing and printing fails once: an error each time, nothing
 * lost. */
static void test_memory(void **state) {
    (void)state;
    tmp_dir dir = tmp_make();
    const char *path = tmp_put(&dir, "m.json", good, strlen(good));
    FAULT_SWEEP(f, 6) {
        cd_machine m, c;
        cd_buf b = {0};
        cd_machine_init(&m);
        cd_machine_init(&c);
        f.st = cd_machine_read(&m, path, &f.err);
        if (!f.st) f.st = cd_machine_choose(&m, "ocl0,cpu0", &c, &f.err);
        if (!f.st) cd_machine_print(&c, &b);
        if (b.oom) f.st = CDMPP_ENOMEM;
        cd_machine_free(&m);
        cd_machine_free(&c);
        cd_buf_free(&b);
    }
    tmp_remove(&dir);
}

TESTS(NULL, NULL, test_read, test_written_and_read, test_bare, test_noise, test_choose,
      test_list_of_names_is_cut, test_bad, test_add, test_memory)
