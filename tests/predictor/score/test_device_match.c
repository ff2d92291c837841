/* Which device of a model answers: its own name, the one given, the only one, the most similar one
 * of its kind, or none. */
#include "predictor/score/device_match.h"

#include <string.h>

#include "base/text/text.h"
#include "check.h"

/* Nothing but the cores is known of them: who has the nearest number, in ratio, is the most
 * similar. The last six are in no model. */
static const char file[] =
    "- {name: small, kind: cpu, cores: 4}\n- {name: middle, aliases: [Xeon 16, mid_dle2], kind: "
    "cpu, cores: 16}\n- {name: large, kind: cpu, cores: 64}\n"
    "- {name: gpu20, kind: gpu, cores: 20}\n- {name: gpu100, kind: gpu, cores: 100}\n"
    "- {name: cpu5, aliases: [five], kind: cpu, cores: 5}\n- {name: cpu30, kind: cpu, cores: "
    "30}\n- {name: cpu50, kind: cpu, cores: 50}\n"
    "- {name: gpu40, kind: gpu, arch: sm_90, cores: 40}\n- {name: gpu70, kind: gpu, arch: sm_90, "
    "cores: 70}\n- {name: bare, kind: cpu, clock_mhz: 2000}\n";

static cd_device_table *table;
static cdmpp_err err;

static int up(void **state) {
    cd_diag diag = {0};
    (void)state;
    const cdmpp_status st =
        cd_device_table_read("d.yaml", file, sizeof file - 1, &diag, &table, &err);
    if (st) print_error("%s\n", diag.text.p);
    cd_diag_free(&diag);
    return st != CDMPP_OK;
}

static int down(void **state) {
    (void)state;
    cd_device_table_free(table);
    return 0;
}

enum { MOST = 5 };

typedef struct {
    cd_model m;
    uint8_t gpu[MOST];
    float vector[MOST * CD_N_DEVICE_COL];
} made;

/* A model of these devices. Device i was described when it learned if bit i of `described` is
 * set. */
static const cd_model *make(made *k, const char **name, size_t n, unsigned described) {
    memset(k, 0, sizeof *k);
    k->m.n_device = n;
    k->m.device = name;
    k->m.device_is_gpu = k->gpu;
    k->m.w_device = CD_N_DEVICE_COL;
    k->m.device_vector = k->vector;
    for (size_t i = 0; i < n; i++) {
        k->gpu[i] = !strncmp(name[i], "gpu", 3);
        if (described >> i & 1)
            assert_ok(
                cd_device_table_vector(table, name[i], k->vector + i * CD_N_DEVICE_COL, &err));
    }
    return &k->m;
}

static const char *five[] = {"small", "middle", "large", "gpu20", "gpu100"};

static cd_device_match *match(const cd_model *m, const char *device, bool nearest, bool file_too) {
    cd_device_match *w = NULL;
    err = (cdmpp_err){0};
    assert_ok(cd_device_match_new(m,
                                  &(cd_device_match_options){.device = device,
                                                             .nearest = nearest,
                                                             .devices = file_too ? table : NULL},
                                  &w, &err));
    return w;
}

static cd_str str(const char *s) { return (cd_str){s, strlen(s)}; }

/* Whoever was described when the model learned, or is described now. */
TEST(the_most_similar) {
    static const struct {
        const char *target, *want;
    } tab[] = {{"llvm -model=cpu5", "small"},
               {"llvm -model=cpu30", "middle"},
               {"llvm -model=cpu50", "large"},
               {"cuda -model=gpu40", "gpu20"},
               {"cuda -model=gpu70", "gpu100"},
               {"cuda -model=cpu30", "gpu20"}}; /* as with boards whose two kinds have one name */
    for (unsigned described = 0; described < 32; described += 5) {
        made k;
        cd_device_match *w = match(make(&k, five, 5, described), NULL, true, true);
        for (int twice = 0; twice < 2; twice++)
            for (size_t i = 0; i < sizeof tab / sizeof *tab; i++) {
                cd_device_pick p;
                assert_ok(cd_device_match_pick(w, str(tab[i].target), "", &p, &err));
                assert_string_equal(five[p.device], tab[i].want);
                assert_string_equal(p.name, strchr(tab[i].target, '=') + 1);
                assert_true(p.unknown);
            }
        cd_device_match_free(w);
    }
}

/* Of whom nothing is known that could be compared stands for nobody, unless it is the only one. */
TEST(without_a_description) {
    const char *two[] = {"stranger", "gpu20"}, *clock[] = {"bare", "gpu20"};
    made k;
    cd_device_pick p;
    cd_device_match *w = match(make(&k, two, 2, 2), NULL, true, true);
    assert_status(cd_device_match_pick(w, str("llvm -model=cpu5"), "", &p, &err), CDMPP_EMODEL);
    assert_non_null(strstr(err.msg, "no described CPU to stand for 'cpu5'"));
    assert_string_equal(err.key, "device");
    assert_ok(cd_device_match_pick(w, str("cuda -model=gpu70"), "", &p, &err));
    assert_int_equal(p.device, 1);
    cd_device_match_free(w);
    w = match(make(&k, clock, 2, 3), NULL, true, true); /* described, with nothing in common */
    assert_status(cd_device_match_pick(w, str("llvm -model=cpu5"), "", &p, &err), CDMPP_EMODEL);
    cd_device_match_free(w);
    w = match(make(&k, five, 2, 3), NULL, true, false);
    assert_status(cd_device_match_pick(w, str("llvm -model=cpu5"), "", &p, &err), CDMPP_EMODEL);
    assert_non_null(strstr(err.msg, "there are no descriptions"));
    cd_device_match_free(w);
    for (int i = 0; i < 3; i++) { /* the only one: not described, no file, not in the file */
        w = match(make(&k, i == 1 ? five : two, 1, 0), NULL, true, i != 1);
        assert_ok(cd_device_match_pick(w, str(i == 2 ? "llvm -model=nobody" : "llvm -model=cpu5"),
                                       "", &p, &err));
        assert_true(p.device == 0 && p.unknown);
        /* but not of another kind */
        assert_status(cd_device_match_pick(w, str("cuda -model=gpu70"), "", &p, &err),
                      CDMPP_EMODEL);
        cd_device_match_free(w);
    }
}

/* The name in the target, else the folder; kinds must agree; no nearest one that was not asked
 * for. */
TEST(its_own_device) {
    static const struct {
        const char *target, *source;
        int want; /* -1: EMODEL */
        const char *why;
    } tab[] = {
        {"llvm -model=middle", "", 1, ""},
        {"llvm -model=middle", "gpu20/a.json", 1, ""},
        {"cuda -model=gpu100", "", 4, ""},
        {"", "logs/large/a.json", 2, ""},
        {"llvm", "small/a.json", 0, ""},
        {"cuda", "small/a.json", -1, "the record is for a GPU, the model's device small is a CPU"},
        {"llvm -model=gpu20", "", -1, "the record is for a CPU, the model's device gpu20 is a GPU"},
        {"llvm -model=cpu5", "", -1,
         "expected one of small, middle, large, gpu20, gpu100, found 'cpu5'; --device NAME says "
         "which to take, --nearest takes the most similar one"},
        {"llvm", "", -1,
         "expected -model= of one of small, middle, large, gpu20, gpu100, found none; --device "
         "NAME says which"},
        {"", "", -1, "found none"},
        /* a folder is no device */
        {"llvm", "nowhere/a.json", -1,
         "found none; --device NAME says which, with --nearest any device that is described"},
        {"cuda -arch=sm_99", "", -1, "found none; --device NAME"}};
    made k;
    cd_device_match *w = match(make(&k, five, 5, 31), NULL, false, true);
    assert_null(cd_device_match_fixed(w));
    for (size_t i = 0; i < sizeof tab / sizeof *tab; i++) {
        cd_device_pick p;
        err = (cdmpp_err){0};
        const cdmpp_status st =
            cd_device_match_pick(w, str(tab[i].target), tab[i].source, &p, &err);
        if (st != (tab[i].want < 0 ? CDMPP_EMODEL : CDMPP_OK) || !strstr(err.msg, tab[i].why))
            fail_msg("'%s' '%s': %s", tab[i].target, tab[i].source, err.msg);
        if (st) assert_string_equal(err.key, "i[0][1]");
        else
            assert_true((int)p.device == tab[i].want && !p.unknown && !p.assumed &&
                        !strcmp(p.name, five[tab[i].want]));
    }
    cd_device_match_free(w);
    /* the only one takes whoever does not say */
    w = match(make(&k, five, 1, 1), NULL, false, false);
    cd_device_pick p;
    assert_ok(cd_device_match_pick(w, str("llvm"), "", &p, &err));
    assert_true(p.device == 0 && !p.unknown && p.assumed);
    /* in any folder, and marked */
    assert_ok(cd_device_match_pick(w, str("llvm"), "elsewhere/a.json", &p, &err));
    assert_true(p.device == 0 && !p.unknown && p.assumed && !strcmp(p.name, "small"));
    assert_ok(cd_device_match_pick(w, str("llvm"), "small/a.json", &p, &err)); /* its own */
    assert_true(p.device == 0 && !p.assumed);
    assert_ok(cd_device_match_pick(w, str("llvm -model=small"), "elsewhere/a.json", &p, &err));
    assert_true(p.device == 0 && !p.assumed);
    assert_status(cd_device_match_pick(w, str("llvm -model=cpu5"), "", &p, &err), CDMPP_EMODEL);
    cd_device_match_free(w);
}

/* A folder is a device where its name is described. An instruction set names the devices that have
 * it, and none of them. */
TEST(folders_and_instruction_sets) {
    made k;
    cd_device_pick p;
    cd_device_match *w = match(make(&k, five, 5, 31), NULL, true, true);
    assert_ok(cd_device_match_pick(w, str("llvm"), "logs/cpu5/a.json", &p, &err));
    assert_true(p.unknown && p.device == 0 && !strcmp(p.name, "cpu5"));
    assert_ok(cd_device_match_pick(w, str("llvm"), "logs/Xeon 16/a.json", &p, &err));
    assert_true(!p.unknown && p.device == 1);
    assert_status(cd_device_match_pick(w, str("cuda -arch=sm_90a"), "logs/monday/a.json", &p, &err),
                  CDMPP_EMODEL);
    assert_string_equal(
        err.msg,
        "device: expected -model= of one of small, middle, large, gpu20, gpu100, found none; "
        "sm_90a is gpu40, gpu70: --device gpu40 --nearest takes what is most similar to it");
    cd_device_match_free(w);
    w = match(&k.m, "gpu40", true, true); /* what the message advises works */
    assert_ok(cd_device_match_pick(w, str("cuda -arch=sm_90a"), "logs/monday/a.json", &p, &err));
    assert_int_equal(p.device, 3);
    cd_device_match_free(w);
}

/* One for all candidates; a candidate that says its device. */
TEST(given_names) {
    made k;
    cd_device_match *w;
    cd_device_pick p;
    const cd_model *m = make(&k, five, 5, 31);
    err = (cdmpp_err){0};
    assert_status(cd_device_match_new(m, &(cd_device_match_options){.device = "cpu30"}, &w, &err),
                  CDMPP_EMODEL);
    assert_non_null(
        strstr(err.msg, "expected one of small, middle, large, gpu20, gpu100, found 'cpu30'"));
    w = match(m, "large", false, false);
    assert_true(cd_device_match_fixed(w)->device == 2 && !cd_device_match_fixed(w)->unknown);
    assert_ok(cd_device_match_pick(w, str("llvm -model=middle"), "", &p, &err));
    assert_int_equal(p.device, 2);
    assert_status(cd_device_match_pick(w, str("cuda"), "", &p, &err), CDMPP_EMODEL);
    assert_ok(cd_device_match_named(w, str(""), str(""), &p, &err));
    assert_int_equal(p.device, 2);
    cd_device_match_free(w);
    w = match(m, "gpu40", true, true); /* by the kind of its description */
    assert_true(cd_device_match_fixed(w)->device == 3 && cd_device_match_fixed(w)->unknown &&
                !strcmp(cd_device_match_fixed(w)->name, "gpu40"));
    cd_device_match_free(w);
    for (int nearest = 0; nearest < 2; nearest++) {
        w = match(m, NULL, nearest, true);
        assert_ok(cd_device_match_named(w, str("middle"), str("llvm -model=large"), &p, &err));
        assert_true(p.device == 1 && !p.unknown);
        assert_ok(cd_device_match_named(w, str("gpu100"), str(""), &p, &err));
        assert_int_equal(p.device, 4);
        assert_ok(cd_device_match_named(w, str(""), str("llvm -model=small"), &p, &err));
        assert_int_equal(p.device, 0);
        assert_status(cd_device_match_named(w, str("middle"), str("cuda"), &p, &err), CDMPP_EMODEL);
        err = (cdmpp_err){0};
        assert_status(cd_device_match_named(w, str(""), str(""), &p, &err), CDMPP_EMODEL);
        assert_non_null(
            strstr(err.msg, "expected one of small, middle, large, gpu20, gpu100, found none"));
        err = (cdmpp_err){0};
        assert_int_equal(cd_device_match_named(w, str("cpu50"), str("llvm"), &p, &err),
                         nearest ? CDMPP_OK : CDMPP_EMODEL);
        if (nearest) assert_true(p.device == 2 && p.unknown);
        else assert_string_equal(err.key, "device");
        cd_device_match_free(w);
    }
}

/* Another name of its description is the device itself, whether a nearest one is asked for or not;
 * without descriptions nobody knows it. */
TEST(other_names) {
    made k;
    cd_device_pick p;
    const cd_model *m = make(&k, five, 5, 31);
    assert_int_equal(cd_device_match_find(m, table, "xeon-16"), 1);
    assert_int_equal(cd_device_match_find(m, NULL, "xeon-16"), -1);
    assert_int_equal(cd_device_match_find(m, table, "five"), -1);
    for (int nearest = 0; nearest < 2; nearest++) {
        cd_device_match *w = match(m, "Xeon 16", nearest, true);
        assert_true(cd_device_match_fixed(w)->device == 1 && !cd_device_match_fixed(w)->unknown &&
                    !strcmp(cd_device_match_fixed(w)->name, "middle"));
        cd_device_match_free(w);
        w = match(m, NULL, nearest, true);
        for (int twice = 0; twice < 2; twice++) {
            assert_ok(cd_device_match_pick(w, str("llvm -model=middle2"), "", &p, &err));
            assert_true(p.device == 1 && !p.unknown && !strcmp(p.name, "middle"));
            assert_ok(cd_device_match_pick(w, str("llvm"), "logs/xeon16/a.json", &p, &err));
            assert_true(p.device == 1 && !p.unknown);
            assert_ok(cd_device_match_named(w, str("XEON16"), str("llvm"), &p, &err));
            assert_true(p.device == 1 && !p.unknown);
            assert_status(cd_device_match_named(w, str("XEON16"), str("cuda"), &p, &err),
                          CDMPP_EMODEL);
        }
        cd_device_match_free(w);
    }
}

TESTS(up, down, the_most_similar, without_a_description, its_own_device, given_names, other_names,
      folders_and_instruction_sets)
