/* Which model is the default one: the user's, that of the user's folder where it is of this
 * processor, the installed one; and what is said of it. */
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
#include "user_folder.h"

static tmp_dir dir;
static char from[512], plain[256], of_cpu[512], of_gpu[512]; /* files of the user's folder */

static int setup(void **state) {
    (void)state;
    static const char *const target[] = {"llvm -model=zen4"};
    cdmpp_err err = {0};
    dir = tmp_make();
    if (user_file(&dir, "cpu-a.cdmpp", of_cpu) || user_file(&dir, "cuda-a.cdmpp", of_gpu)) return 1;
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

static void put_here(const char *cpu) { put(of_cpu, cpu, ""); }

static const char *own_cpu(void) {
    static cd_describe_name d;
    cdmpp_err err = {0};
    assert_ok(cd_describe_name_cpu("", NULL, &d, &err));
    return d.says;
}

static bool is_here(void) {
    cd_arena a = {0};
    const char *path = cd_default_model_path(&a);
    const bool is = path && !strcmp(path, of_cpu);
    cd_arena_free(&a);
    return is;
}

TEST(that_of_this_processor) {
    char what[CD_DEFAULT_MODEL_SAID];
    cd_arena a = {0};
    assert_false(is_here());
    put_here(own_cpu());
    assert_true(is_here());
    assert_string_equal(cd_default_model_what(of_cpu, what),
                        "corrected by 37 programs measured on this machine");
    const char *without = cd_default_model_plain(&a);
    assert_true(!without || strcmp(without, of_cpu) != 0);
    setenv("CDMPP_DEFAULT_MODEL", "m.cdmpp", 1);
    assert_string_equal(cd_default_model_path(&a), "m.cdmpp");
    assert_string_equal(cd_default_model_what("m.cdmpp", what), "the default one");
    unsetenv("CDMPP_DEFAULT_MODEL");
    cd_arena_free(&a);
}

TEST(that_of_another_one_is_not_used) {
    char what[CD_DEFAULT_MODEL_SAID];
    put_here("Another Processor 9000");
    assert_false(is_here());
    /* one of another machine that shares the folder */
    assert_string_equal(cd_default_model_what("m.cdmpp", what), "the default one");
    assert_string_equal(cd_default_model_what(of_cpu, what),
                        "corrected by 37 programs measured on Another Processor 9000");
    (void)unlink(of_cpu);
}

/* "AMD EPYC" is what four generations say. */
TEST(that_of_another_one_of_the_same_name_is_not_used_and_the_difference_is_said) {
    char what[CD_DEFAULT_MODEL_SAID];
    cd_describe_identity other = own();
    other.number[CD_IDENTITY_CORES] += 8;
    put_of(of_cpu, other.says, &other, "");
    assert_false(is_here() || cd_default_model_is_here(of_cpu));
    const char *said = strstr(cd_default_model_what("m.cdmpp", what), "and is not used: cores ");
    assert_non_null(said);
    cdmpp_err err = {0};
    assert_status(cd_default_model_missing(&err), CDMPP_EUSAGE);
    assert_non_null(strstr(err.msg, "cpu-a.cdmpp is of another processor"));
    assert_int_equal(atoi(said + strlen("and is not used: cores ")),
                     (int)other.number[CD_IDENTITY_CORES]);
    other = own();
    other.family++;
    put_of(of_cpu, other.says, &other, "");
    assert_false(is_here());
    assert_non_null(
        strstr(cd_default_model_what("m.cdmpp", what), "and is not used: microarchitecture "));
    put_of(of_cpu, own_cpu(), NULL, ""); /* an earlier version knew the name alone */
    assert_false(is_here());
    assert_non_null(strstr(cd_default_model_what("m.cdmpp", what),
                           "cpu-a.cdmpp does not say which machine it is of"));
    (void)unlink(of_cpu);
}

/* Whoever may write into the folder does not choose the model. */
TEST(that_of_another_user_is_not_used_and_this_is_said) {
    char what[CD_DEFAULT_MODEL_SAID];
    put_here(own_cpu());
    if (geteuid() != 0 || chown(of_cpu, 12345, 12345) != 0) skip(); /* only root gives files away */
    assert_false(is_here());
    assert_non_null(strstr(cd_default_model_what("m.cdmpp", what),
                           "cpu-a.cdmpp belongs to another user (number 12345) and is not used"));
    assert_true(cd_default_model_is_here(of_cpu)); /* who names it takes it */
    (void)unlink(of_cpu);
}

/* Earlier versions found it in the current folder. */
TEST(one_of_the_current_folder_is_not_used_and_this_is_said) {
    char what[CD_DEFAULT_MODEL_SAID];
    cd_arena a = {0};
    put("here.cdmpp", own_cpu(), "");
    put("here-gpu.cdmpp", "Another GPU 9000", "\"backend\":\"cuda\"");
    const char *path = cd_default_model_path(&a);
    assert_true(!path || !strstr(path, "here"));
    assert_null(cd_default_model_gpu_file(&a));
    assert_non_null(strstr(cd_default_model_what("m.cdmpp", what),
                           "the default one; here.cdmpp of this folder is no longer read"));
    assert_non_null(strstr(cd_default_model_gpu_why("cuda", NULL, what),
                           "here-gpu.cdmpp of this folder is no longer read"));
    assert_non_null(strstr(cd_default_model_what("here.cdmpp", what),
                           "corrected by 37 programs measured on this machine"));
    (void)unlink("here.cdmpp");
    (void)unlink("here-gpu.cdmpp");
    cd_arena_free(&a);
}

/* A home folder that machines share: each finds its own, and writes over its own alone. */
TEST(each_machine_has_its_file) {
    cdmpp_err err = {0};
    cd_arena a = {0};
    cd_describe_identity here = own(), other = here;
    const char *mine, *again, *its, *gpu;
    other.number[CD_IDENTITY_CORES] += 8;
    assert_ok(cd_user_model_path(&a, NULL, &other, &its, &err));
    put_of(its, other.says, &other, "");
    assert_ok(cd_user_model_path(&a, NULL, &here, &mine, &err));
    assert_string_not_equal(mine, its);
    put_of(mine, here.says, &here, "");
    assert_string_equal(cd_default_model_path(&a), mine);
    assert_true(cd_default_model_is_user(mine) && !cd_default_model_is_user("m.cdmpp"));
    assert_ok(cd_user_model_path(&a, NULL, &other, &again, &err));
    assert_string_equal(again, its);
    assert_ok(rename(mine, of_cpu) ? CDMPP_EIO : CDMPP_OK); /* whatever its name is */
    assert_ok(cd_user_model_path(&a, NULL, &here, &again, &err));
    assert_string_equal(again, of_cpu);
    assert_ok(cd_user_model_path(&a, "cuda", &here, &gpu, &err));
    assert_non_null(strstr(gpu, "/cuda-"));
    (void)unlink(of_cpu);
    (void)unlink(its);
    unsetenv("XDG_DATA_HOME");
    setenv("HOME", "relative", 1);
    assert_status(cd_user_model_path(&a, NULL, &here, &mine, &err), CDMPP_EUSAGE);
    setenv("HOME", tmp_path(&dir, "home/of/mine"), 1);
    assert_ok(cd_user_model_path(&a, NULL, &here, &mine, &err));
    assert_non_null(strstr(mine, "/home/of/mine/.local/share/cdmpp/models/cpu-"));
    assert_ok(user_file(&dir, "cpu-a.cdmpp", of_cpu));
    cd_arena_free(&a);
}

/* Of models of two GPUs only the driver knows which one is here. */
TEST(several_gpus_are_looked_for) {
    cdmpp_err err = {0};
    cd_arena a = {0};
    char second[512];
    assert_ok(user_file(&dir, "cuda-b.cdmpp", second));
    put(of_gpu, "Another GPU 9000", "\"backend\":\"cuda\"");
    assert_string_equal(cd_default_model_gpu_file(&a), of_gpu);
    put(second, "Another GPU 9001", "\"backend\":\"cuda\"");
    assert_null(cd_default_model_gpu_file(&a));
    (void)unlink(of_gpu);
    (void)unlink(second);
    cd_arena_free(&a);
}

TEST(one_that_is_damaged_is_told) {
    cdmpp_err err = {0};
    char what[CD_DEFAULT_MODEL_SAID];
    assert_ok(cd_file_write(of_cpu, "{}", 2, &err));
    assert_false(is_here());
    assert_non_null(strstr(cd_default_model_what("m.cdmpp", what), "cpu-a.cdmpp is damaged"));
    (void)unlink(of_cpu);
    assert_string_equal(cd_default_model_what("m.cdmpp", what), "the default one");
}

/* It would be waited for. */
TEST(a_pipe_is_not_opened) {
    assert_int_equal(mkfifo(of_cpu, 0600), 0);
    assert_false(is_here() || cd_default_model_is_here(of_cpu));
    (void)unlink(of_cpu);
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
    assert_ok(cd_model_load(of_cpu, &m, &err));
    assert_ok(cd_default_model_device(of_cpu, devices, name, 3, NULL, &out, &match, &err));
    assert_string_equal(out, "mine");
    assert_true(match.exact);
    assert_int_equal(cd_model_find_device(m, "mine", 4), 1);
    cd_model_free(m);
    /* which somebody names all the same: its device does not stand for this machine */
    put_here("Another Processor 9000");
    cd_describe_match plain_match;
    const char *plain_out;
    assert_ok(
        cd_default_model_device("m.cdmpp", devices, name, 2, NULL, &plain_out, &plain_match, &err));
    assert_ok(cd_default_model_device(of_cpu, devices, name, 2, NULL, &out, &match, &err));
    assert_string_equal(out, plain_out);
    assert_true(match.exact == plain_match.exact);
    cd_device_table_free(devices);
    cd_diag_free(&diag);
}

/* ---- a GPU ---- */
static bool is_gpu(const char *backend) {
    cd_arena a = {0};
    const char *path = cd_default_model_gpu(&a, backend, NULL);
    assert_true(!path || !strcmp(path, of_gpu));
    cd_arena_free(&a);
    return path != NULL;
}

static void why_not(const char *backend, const char *says) {
    char why[CD_DEFAULT_MODEL_SAID];
    assert_false(is_gpu(backend));
    cd_default_model_gpu_why(backend, NULL, why);
    if (!says[0]) assert_string_equal(why, "");
    else assert_string_equal(strstr(why, "cuda-a.cdmpp"), says);
}

TEST(that_of_another_gpu_is_not_used_and_this_is_said) {
    cdmpp_err err = {0};
    why_not("cuda", "");
    put(of_gpu, "Another GPU 9000", "\"backend\":\"cuda\"");
    why_not("cuda", "cuda-a.cdmpp is of another GPU (Another GPU 9000) and is not used");
    why_not("opencl", "cuda-a.cdmpp is of cuda, not of opencl, and is not used");
    assert_status(cd_default_model_gpu_missing("cuda", &err), CDMPP_EUSAGE);
    assert_non_null(strstr(err.msg, "is of another GPU"));
    assert_non_null(strstr(err.msg, "--cost-model FILE names one"));
    setenv("CDMPP_DEFAULT_MODEL", "m.cdmpp", 1);
    why_not("cuda", "");
    unsetenv("CDMPP_DEFAULT_MODEL");
    assert_ok(cd_file_write(of_gpu, "{}", 2, &err));
    why_not("cuda", "cuda-a.cdmpp is damaged, or no model that calibrate wrote, and is not used");
    (void)unlink(of_gpu);
}

/* A file that is called after the other kind is no secret, and no model. */
TEST(the_wrong_kind_is_never_taken) {
    char what[CD_DEFAULT_MODEL_SAID], want[CD_DEFAULT_MODEL_SAID];
    put(of_gpu, own_cpu(), "");
    snprintf(want, sizeof want, "cuda-a.cdmpp is of a processor (%.120s) and is not used",
             own_cpu());
    why_not("cuda", want);
    (void)unlink(of_gpu);
    put(of_cpu, own_cpu(), "\"backend\":\"opencl\"");
    assert_false(is_here());
    assert_non_null(strstr(cd_default_model_what("m.cdmpp", what), "cpu-a.cdmpp is of a GPU ("));
    (void)unlink(of_cpu);
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
                 cd_default_model_is_gpu_plain(of_gpu));
    assert_string_equal(cd_default_model_what("a/" CD_DEFAULT_MODEL_GPU, what),
                        "the default one of GPUs");
    put(of_gpu, "Another GPU 9000", "\"backend\":\"cuda\"");
    assert_non_null(
        strstr(cd_default_model_what(CD_DEFAULT_MODEL_GPU, what), "the default one of GPUs; "));
    assert_non_null(
        strstr(what, "cuda-a.cdmpp is of another GPU (Another GPU 9000) and is not used"));
    const char *other = cd_default_model_for_gpu(&a, NULL, NULL);
    assert_true(!path == !other && (!other || cd_default_model_is_gpu_plain(other)));
    (void)unlink(of_gpu);
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
    put_of(of_gpu, d.says, &i, "\"backend\":\"opencl\""); /* of the same name */
    assert_false(is_gpu("opencl"));
    assert_non_null(
        strstr(cd_default_model_gpu_why("opencl", NULL, what), "and is not used: cores "));
    i.number[CD_IDENTITY_CORES]--;
    put_of(of_gpu, d.says, &i, "\"backend\":\"opencl\"");
    assert_true(is_gpu("opencl") && is_gpu(NULL) && !is_gpu("cuda"));
    assert_non_null(cd_default_model_gpu(&a, "opencl", ""));
    assert_null(cd_default_model_gpu(&a, "opencl", "200")); /* which is not there */
    assert_non_null(strstr(cd_default_model_gpu_why("opencl", "200", what), "is of another GPU"));
    cd_arena_free(&a);
    assert_true(cd_default_model_is_here(of_gpu));
    char want[CD_DEFAULT_MODEL_SAID];
    snprintf(want, sizeof want, "corrected by 37 programs measured on this machine's GPU (%.120s)",
             d.says);
    assert_string_equal(cd_default_model_what(of_gpu, what), want);
    assert_ok(cd_default_model_device(of_gpu, NULL, name, 2, NULL, &out, &match, &err));
    assert_string_equal(out, "mine");
    assert_true(match.exact);
    assert_string_equal(match.microarch, "opencl");
    put(of_cpu, d.says, "\"backend\":\"opencl\""); /* of this GPU, and called as the processor's */
    assert_false(is_here());
    (void)unlink(of_cpu);
    (void)unlink(of_gpu);
}

TEST(without_memory_no_model_is_made_up) {
    put_here(own_cpu());
    FAULT_SWEEP(f, 0) {
        cd_arena a = {0};
        const char *path = cd_default_model_path(&a);
        f.st = path && !strcmp(path, of_cpu) ? CDMPP_OK : CDMPP_ENOMEM;
        cd_arena_free(&a);
    }
    (void)unlink(of_cpu);
    put(of_gpu, "Another GPU 9000", "\"backend\":\"cuda\"");
    for (int k = 0; k < 60; k++) {
        char why[CD_DEFAULT_MODEL_SAID];
        fault_at(k);
        assert_false(is_gpu("cuda"));
        (void)cd_default_model_gpu_why("cuda", NULL, why);
        fault_off();
    }
    (void)unlink(of_gpu);
}

TESTS(setup, teardown, that_of_this_processor, that_of_another_one_is_not_used,
      that_of_another_one_of_the_same_name_is_not_used_and_the_difference_is_said,
      that_of_another_user_is_not_used_and_this_is_said,
      one_of_the_current_folder_is_not_used_and_this_is_said, each_machine_has_its_file,
      several_gpus_are_looked_for, one_that_is_damaged_is_told, a_pipe_is_not_opened,
      it_is_a_device_of_its_model, that_of_another_gpu_is_not_used_and_this_is_said,
      the_wrong_kind_is_never_taken, the_installed_one_of_gpus, a_gpu_that_is_not_here,
      that_of_this_gpu, without_memory_no_model_is_made_up)
