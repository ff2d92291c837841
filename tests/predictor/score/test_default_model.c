/* Which model is the default one: the user's, that of this folder where it is of this processor, the installed one; and what is said of it. */
#include "predictor/score/score.h"
#include "check.h"
#include "fault.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/io.h"
#include "gpu_says.h"
#include "made_here.h"
#include "made_model.h"

static tmp_dir dir;
static char from[512], plain[256];

static int setup(void **state) {
    (void)state;
    static const char *const target[] = {"llvm -model=zen4"};
    cdmpp_err err = {0};
    dir = tmp_make();
    snprintf(plain, sizeof plain, "%s", tmp_path(&dir, "m.cdmpp"));
    const cdmpp_status st = made_learn_targets(&dir, target, 1, "train.rounds=5", plain, &err);
    unsetenv("CDMPP_DEFAULT_MODEL");
    return st != CDMPP_OK || !getcwd(from, sizeof from) || chdir(tmp_path(&dir, ".")) != 0;
}

static int teardown(void **state) {
    (void)state;
    const int failed = chdir(from);
    tmp_remove(&dir);
    return failed;
}

/* A file of this machine, or of a GPU where `more` names its back end. of NULL: it does not say. */
static void put_of(const char *file, const char *cpu, const cd_describe_identity *of,
                   const char *more) {
    cdmpp_err err = {0};
    cd_buf b = {0}, all = {0};
    if (of) cd_buf_puts(&all, "\"machine\":"), cd_describe_identity_put(&all, of);
    cd_buf_putf(&all, "%s%s", of && more[0] ? "," : "", more);
    assert_ok(made_here_more("m.cdmpp", 0, cpu, 2, all.p, &b, &err));
    assert_ok(cd_file_write(file, b.p, b.n, &err));
    cd_buf_free(&b);
    cd_buf_free(&all);
}

static cd_describe_identity own(void) {
    cd_describe_identity i;
    cdmpp_err err = {0};
    assert_ok(cd_describe_identity_cpu("", &i, &err));
    return i;
}

static void put(const char *file, const char *cpu, const char *more) {
    cd_describe_identity i = own();
    if (strcmp(i.says, cpu) != 0) i = cd_describe_identity_named(cpu);
    put_of(file, cpu, &i, more);
}

static void put_here(const char *cpu) { put(CD_DEFAULT_MODEL_HERE, cpu, ""); }

static const char *own_cpu(void) {
    static cd_describe_name d;
    cdmpp_err err = {0};
    assert_ok(cd_describe_name_cpu("", NULL, &d, &err));
    return d.says;
}

static bool is_here(void) {
    cd_arena a = {0};
    const char *path = cd_default_model_path(&a);
    const bool is = path && !strcmp(path, CD_DEFAULT_MODEL_HERE);
    cd_arena_free(&a);
    return is;
}

TEST(that_of_this_processor) {
    char what[CD_DEFAULT_MODEL_SAID];
    cd_arena a = {0};
    assert_false(is_here());
    put_here(own_cpu());
    assert_true(is_here());
    assert_string_equal(cd_default_model_what(CD_DEFAULT_MODEL_HERE, what),
                        "corrected by 37 programs measured on this machine");
    const char *without = cd_default_model_plain(&a);
    assert_true(!without || strcmp(without, CD_DEFAULT_MODEL_HERE) != 0);
    setenv("CDMPP_DEFAULT_MODEL", "m.cdmpp", 1);
    assert_string_equal(cd_default_model_path(&a), "m.cdmpp");
    assert_string_equal(cd_default_model_what("m.cdmpp", what), "the default one");
    unsetenv("CDMPP_DEFAULT_MODEL");
    cd_arena_free(&a);
}

TEST(that_of_another_one_is_not_used_and_this_is_said) {
    char what[CD_DEFAULT_MODEL_SAID];
    put_here("Another Processor 9000");
    assert_false(is_here());
    assert_non_null(
        strstr(cd_default_model_what("m.cdmpp", what),
               "here.cdmpp is of another processor (Another Processor 9000) and is not used"));
    assert_string_equal(cd_default_model_what(CD_DEFAULT_MODEL_HERE, what),
                        "corrected by 37 programs measured on Another Processor 9000");
    (void)unlink(CD_DEFAULT_MODEL_HERE);
}

/* "AMD EPYC" is what four generations say. */
TEST(that_of_another_one_of_the_same_name_is_not_used_and_the_difference_is_said) {
    char what[CD_DEFAULT_MODEL_SAID];
    cd_describe_identity other = own();
    other.number[CD_IDENTITY_CORES] += 8;
    put_of(CD_DEFAULT_MODEL_HERE, other.says, &other, "");
    assert_false(is_here() || cd_default_model_is_here(CD_DEFAULT_MODEL_HERE));
    const char *said = strstr(cd_default_model_what("m.cdmpp", what), "and is not used: cores ");
    assert_non_null(said);
    cdmpp_err err = {0};
    assert_status(cd_default_model_missing(&err), CDMPP_EUSAGE);
    assert_non_null(strstr(err.msg, "brings a default one; here.cdmpp is of another processor"));
    assert_int_equal(atoi(said + strlen("and is not used: cores ")),
                     (int)other.number[CD_IDENTITY_CORES]);
    other = own();
    other.family++;
    put_of(CD_DEFAULT_MODEL_HERE, other.says, &other, "");
    assert_false(is_here());
    assert_non_null(
        strstr(cd_default_model_what("m.cdmpp", what), "and is not used: microarchitecture "));
    put_of(CD_DEFAULT_MODEL_HERE, own_cpu(), NULL, ""); /* an earlier version knew the name alone */
    assert_false(is_here());
    assert_non_null(strstr(cd_default_model_what("m.cdmpp", what),
                           "here.cdmpp does not say which machine it is of"));
    (void)unlink(CD_DEFAULT_MODEL_HERE);
}

/* Whoever may write into the folder does not choose the model. */
TEST(that_of_another_user_is_not_used_and_this_is_said) {
    char what[CD_DEFAULT_MODEL_SAID];
    put_here(own_cpu());
    if (geteuid() != 0 || chown(CD_DEFAULT_MODEL_HERE, 12345, 12345) != 0)
        skip(); /* only root gives files away */
    assert_false(is_here());
    assert_non_null(strstr(cd_default_model_what("m.cdmpp", what),
                           "here.cdmpp belongs to another user (number 12345) and is not used"));
    assert_true(cd_default_model_is_here(CD_DEFAULT_MODEL_HERE)); /* who names it takes it */
    (void)unlink(CD_DEFAULT_MODEL_HERE);
}

TEST(one_that_is_damaged_is_told) {
    cdmpp_err err = {0};
    char what[CD_DEFAULT_MODEL_SAID];
    assert_ok(cd_file_write(CD_DEFAULT_MODEL_HERE, "{}", 2, &err));
    assert_false(is_here());
    assert_non_null(strstr(cd_default_model_what("m.cdmpp", what), "here.cdmpp is damaged"));
    (void)unlink(CD_DEFAULT_MODEL_HERE);
    assert_string_equal(cd_default_model_what("m.cdmpp", what), "the default one");
}

/* It would be waited for. */
TEST(a_pipe_is_not_opened) {
    assert_int_equal(mkfifo(CD_DEFAULT_MODEL_HERE, 0600), 0);
    assert_false(is_here() || cd_default_model_is_here(CD_DEFAULT_MODEL_HERE));
    (void)unlink(CD_DEFAULT_MODEL_HERE);
}

/* The machine is a device of the model, whichever other one is most like the processor. */
TEST(it_is_a_device_of_its_model) {
    cdmpp_err err = {0};
    cd_model *m;
    cd_device_table *devices;
    cd_diag diag = {0};
    char yaml[600];
    const char *name[] = {"granite-rapids", "zen4", "mine"}, *out;
    cd_describe_match match;
    put_here(own_cpu());
    snprintf(yaml, sizeof yaml, "%s/configs/devices.yaml", from);
    assert_ok(cd_device_table_load(yaml, &diag, &devices, &err));
    assert_ok(cd_model_load(CD_DEFAULT_MODEL_HERE, &m, &err));
    assert_ok(
        cd_default_model_device(CD_DEFAULT_MODEL_HERE, devices, name, 3, NULL, &out, &match, &err));
    assert_string_equal(out, "mine");
    assert_true(match.exact);
    assert_int_equal(cd_model_find_device(m, "mine", 4), 1);
    cd_model_free(m);
    put_here(
        "Another Processor 9000"); /* which somebody names all the same: its device does not stand for this machine */
    cd_describe_match plain_match;
    const char *plain_out;
    assert_ok(
        cd_default_model_device("m.cdmpp", devices, name, 2, NULL, &plain_out, &plain_match, &err));
    assert_ok(
        cd_default_model_device(CD_DEFAULT_MODEL_HERE, devices, name, 2, NULL, &out, &match, &err));
    assert_string_equal(out, plain_out);
    assert_true(match.exact == plain_match.exact);
    cd_device_table_free(devices);
    cd_diag_free(&diag);
}

/* ---- a GPU ---- */
static bool is_gpu(const char *backend) {
    cd_arena a = {0};
    const char *path = cd_default_model_gpu(&a, backend, NULL);
    assert_true(!path || !strcmp(path, CD_DEFAULT_MODEL_HERE_GPU));
    cd_arena_free(&a);
    return path != NULL;
}

static void why_not(const char *backend, const char *says) {
    char why[CD_DEFAULT_MODEL_SAID];
    assert_false(is_gpu(backend));
    assert_string_equal(cd_default_model_gpu_why(backend, NULL, why), says);
}

TEST(that_of_another_gpu_is_not_used_and_this_is_said) {
    cdmpp_err err = {0};
    why_not("cuda", "");
    put(CD_DEFAULT_MODEL_HERE_GPU, "Another GPU 9000", "\"backend\":\"cuda\"");
    why_not("cuda", "here-gpu.cdmpp is of another GPU (Another GPU 9000) and is not used");
    why_not("opencl", "here-gpu.cdmpp is of cuda, not of opencl, and is not used");
    assert_status(cd_default_model_gpu_missing("cuda", &err), CDMPP_EUSAGE);
    assert_non_null(strstr(err.msg, "is of another GPU"));
    assert_non_null(strstr(err.msg, "--cost-model FILE names one"));
    setenv("CDMPP_DEFAULT_MODEL", "m.cdmpp", 1);
    why_not("cuda", "");
    unsetenv("CDMPP_DEFAULT_MODEL");
    assert_ok(cd_file_write(CD_DEFAULT_MODEL_HERE_GPU, "{}", 2, &err));
    why_not("cuda", "here-gpu.cdmpp is damaged, or no model that calibrate wrote, and is not used");
    (void)unlink(CD_DEFAULT_MODEL_HERE_GPU);
}

/* A file that is called after the other kind is no secret, and no model. */
TEST(the_wrong_kind_is_never_taken) {
    char what[CD_DEFAULT_MODEL_SAID], want[CD_DEFAULT_MODEL_SAID];
    put(CD_DEFAULT_MODEL_HERE_GPU, own_cpu(), "");
    snprintf(want, sizeof want, "here-gpu.cdmpp is of a processor (%.120s) and is not used",
             own_cpu());
    why_not("cuda", want);
    (void)unlink(CD_DEFAULT_MODEL_HERE_GPU);
    put(CD_DEFAULT_MODEL_HERE, own_cpu(), "\"backend\":\"opencl\"");
    assert_false(is_here());
    assert_non_null(strstr(cd_default_model_what("m.cdmpp", what),
                           "and is not used: that of a GPU is called here-gpu.cdmpp"));
    (void)unlink(CD_DEFAULT_MODEL_HERE);
}

/* Installed or not, it is one file of a name, which no variable hides but CDMPP_DEFAULT_MODEL. */
TEST(the_installed_one_of_gpus) {
    char what[CD_DEFAULT_MODEL_SAID];
    cd_arena a = {0};
    const char *path = cd_default_model_gpu_plain(&a);
    assert_true(!path || cd_default_model_is_gpu_plain(path));
    assert_true(cd_default_model_is_gpu_plain(CD_DEFAULT_MODEL_GPU) &&
                cd_default_model_is_gpu_plain("a/b/" CD_DEFAULT_MODEL_GPU));
    assert_false(cd_default_model_is_gpu_plain(CD_DEFAULT_MODEL) ||
                 cd_default_model_is_gpu_plain(CD_DEFAULT_MODEL_GPU "/m.cdmpp") ||
                 cd_default_model_is_gpu_plain(CD_DEFAULT_MODEL_HERE_GPU));
    assert_string_equal(cd_default_model_what("a/" CD_DEFAULT_MODEL_GPU, what),
                        "the default one of GPUs");
    put(CD_DEFAULT_MODEL_HERE_GPU, "Another GPU 9000", "\"backend\":\"cuda\"");
    assert_string_equal(cd_default_model_what(CD_DEFAULT_MODEL_GPU, what),
                        "the default one of GPUs; here-gpu.cdmpp is of another GPU (Another GPU "
                        "9000) and is not used");
    const char *other = cd_default_model_for_gpu(&a, NULL, NULL);
    assert_true(!path == !other && (!other || cd_default_model_is_gpu_plain(other)));
    (void)unlink(CD_DEFAULT_MODEL_HERE_GPU);
    setenv("CDMPP_DEFAULT_MODEL", "", 1);
    assert_null(cd_default_model_gpu_plain(&a));
    setenv("CDMPP_DEFAULT_MODEL", CD_DEFAULT_MODEL_GPU, 1);
    assert_null(cd_default_model_for_gpu(&a, NULL, NULL));
    unsetenv("CDMPP_DEFAULT_MODEL");
    cd_arena_free(&a);
}

/* Where the back end has no device, none is made up. */
TEST(a_gpu_that_is_not_here) {
    static const char *const name[] = {"h100"};
    const char *out = NULL;
    cdmpp_err err = {0};
    cd_describe_match here;
    cd_model *model = NULL;
    assert_true(cd_default_model_gpu_device("m.cdmpp", "nobody's", "", NULL, name, 1, NULL, &out,
                                            &here, &err) != CDMPP_OK);
    assert_ok(cd_model_load("m.cdmpp", &model, &err));
    FAULT_SWEEP(f, 0)
    f.st = cd_default_model_gpu_host("m.cdmpp", model, "nobody's", "", NULL, &out, &f.err) ==
                   CDMPP_ENOMEM
               ? CDMPP_ENOMEM
               : CDMPP_OK;
    assert_null(out);
    cd_model_free(model);
}

TEST(that_of_this_gpu) {
    char what[CD_DEFAULT_MODEL_SAID];
    cdmpp_err err = {0};
    cd_describe_name d;
    cd_describe_match match;
    cd_arena a = {0};
    const char *name[] = {"zen4", "mine"}, *out;
    SKIP_WITHOUT_GPU(&d);
    cd_describe_entry e;
    cd_describe_identity i;
    assert_ok(cd_describe_gpu_apart("opencl", "", &e, &err));
    cd_describe_identity_gpu(&e, &i);
    i.number[CD_IDENTITY_CORES]++;
    put_of(CD_DEFAULT_MODEL_HERE_GPU, d.says, &i, "\"backend\":\"opencl\""); /* of the same name */
    assert_false(is_gpu("opencl"));
    assert_non_null(
        strstr(cd_default_model_gpu_why("opencl", NULL, what), "and is not used: cores "));
    i.number[CD_IDENTITY_CORES]--;
    put_of(CD_DEFAULT_MODEL_HERE_GPU, d.says, &i, "\"backend\":\"opencl\"");
    assert_true(is_gpu("opencl") && is_gpu(NULL) && !is_gpu("cuda"));
    assert_non_null(cd_default_model_gpu(&a, "opencl", ""));
    assert_null(cd_default_model_gpu(&a, "opencl", "200")); /* which is not there */
    assert_non_null(strstr(cd_default_model_gpu_why("opencl", "200", what), "is of another GPU"));
    cd_arena_free(&a);
    assert_true(cd_default_model_is_here(CD_DEFAULT_MODEL_HERE_GPU));
    char want[CD_DEFAULT_MODEL_SAID];
    snprintf(want, sizeof want, "corrected by 37 programs measured on this machine's GPU (%.120s)",
             d.says);
    assert_string_equal(cd_default_model_what(CD_DEFAULT_MODEL_HERE_GPU, what), want);
    assert_ok(cd_default_model_device(CD_DEFAULT_MODEL_HERE_GPU, NULL, name, 2, NULL, &out, &match,
                                      &err));
    assert_string_equal(out, "mine");
    assert_true(match.exact);
    assert_string_equal(match.microarch, "opencl");
    put(CD_DEFAULT_MODEL_HERE, d.says,
        "\"backend\":\"opencl\""); /* of this GPU, and called as the processor's */
    assert_false(is_here());
    (void)unlink(CD_DEFAULT_MODEL_HERE);
    (void)unlink(CD_DEFAULT_MODEL_HERE_GPU);
}

TEST(without_memory_no_model_is_made_up) {
    put_here(own_cpu());
    FAULT_SWEEP(f, 0) {
        cd_arena a = {0};
        const char *path = cd_default_model_path(&a);
        f.st = path && !strcmp(path, CD_DEFAULT_MODEL_HERE) ? CDMPP_OK : CDMPP_ENOMEM;
        cd_arena_free(&a);
    }
    (void)unlink(CD_DEFAULT_MODEL_HERE);
    put(CD_DEFAULT_MODEL_HERE_GPU, "Another GPU 9000", "\"backend\":\"cuda\"");
    for (int k = 0; k < 60; k++) {
        char why[CD_DEFAULT_MODEL_SAID];
        fault_at(k);
        assert_false(is_gpu("cuda"));
        (void)cd_default_model_gpu_why("cuda", NULL, why);
        fault_off();
    }
    (void)unlink(CD_DEFAULT_MODEL_HERE_GPU);
}

TESTS(setup, teardown, that_of_this_processor, that_of_another_one_is_not_used_and_this_is_said,
      that_of_another_one_of_the_same_name_is_not_used_and_the_difference_is_said,
      that_of_another_user_is_not_used_and_this_is_said, one_that_is_damaged_is_told,
      a_pipe_is_not_opened, it_is_a_device_of_its_model,
      that_of_another_gpu_is_not_used_and_this_is_said, the_wrong_kind_is_never_taken,
      the_installed_one_of_gpus, a_gpu_that_is_not_here, that_of_this_gpu,
      without_memory_no_model_is_made_up)
