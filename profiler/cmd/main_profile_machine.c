/* Modes about this machine: "--describe-device" prints entries of devices.yaml, "wrap" measures
 * time and memory of any program. */
#include <string.h>

#include "profiler/cmd/main_profile.h"
#include "profiler/describe/describe.h"
#include "profiler/records/records.h"
#include "profiler/wrap/wrap.h"

cdmpp_status cd_main_profile_describe_check(const cd_main_profile *o, cdmpp_err *err) {
    if (o->core_type >= 0 && (o->from_records || o->operand.n > 1 ||
                              (o->operand.n && strcmp(o->operand.v[0], "cpu") != 0)))
        return CD_FAIL(
            err, EUSAGE,
            "--core-type is about the processor: --describe-device --core-type TYPE cpu");
    if (o->keep_noisy && !o->measure)
        return CD_FAIL(err, EUSAGE, "--keep-noisy goes with --measure");
    if (!o->from_records) return CDMPP_OK;
    if (o->measure) return CD_FAIL(err, EUSAGE, "--measure and --from-records: one or the other");
    return cd_main_profile_logs_check(o, "no records to read", err);
}

/* Descriptions beside which the descriptors stand: the installed ones, where there are any. */
static cdmpp_status from_records(cd_main_profile *o, cd_buf *b, cdmpp_err *err) {
    const cd_record_listener l = cd_main_profile_listener(o);
    cd_task_registry *tasks = NULL;
    cd_device_table *devices = NULL;
    cd_arena a = {0};
    cd_diag diag = {0};
    const char *path;
    if (!cd_device_table_path(&a, NULL, NULL, &path, NULL))
        (void)cd_device_table_load(path, &diag, &devices, NULL);
    cdmpp_status st = cd_main_profile_tasks_load(o, &tasks, err);
    if (!st) st = cd_describe_records(tasks, o->operand.v, o->operand.n, devices, &l, b, err);
    cd_task_registry_free(tasks);
    cd_device_table_free(devices);
    cd_diag_free(&diag);
    cd_arena_free(&a);
    return st;
}

cdmpp_status cd_main_profile_describe(cd_main_profile *o, cdmpp_err *err) {
    cd_buf b = {0}, quoted = {0};
    const size_t n = o->operand.n ? o->operand.n : 1;
    const cd_describe_how how = !o->measure     ? CD_DESCRIBE_SAID
                                : o->keep_noisy ? CD_DESCRIBE_NOISY
                                                : CD_DESCRIBE_MEASURED;
    cdmpp_status st = o->from_records ? from_records(o, &b, err) : CDMPP_OK;
    for (size_t i = 0; i < n && !st && !o->from_records; i++)
        st = cd_describe(o->operand.n ? o->operand.v[i] : "cpu", how, cd_main_profile_core(o), &b,
                         err);
    if (st) return cd_buf_free(&b), st;
    if (o->json) cd_command_quote(&quoted, &b);
    return cd_main_profile_print(o, "cdmpp.device_description", o->json ? &quoted : &b, err);
}

cdmpp_status cd_main_profile_wrap_check(const cd_main_profile *o, cdmpp_err *err) {
    return o->operand.n ? CDMPP_OK
                        : CD_FAIL(err, EUSAGE, "wrap: expected -- and the command to run");
}

/* To standard error, behind everything that the program wrote there, or to --out ("-": standard
 * output). */
static cdmpp_status print_wrap(const cd_main_profile *o, const cd_process_profile_report *r,
                               cdmpp_err *err) {
    cd_buf b = {0}, all = {0};
    (o->json ? cd_process_profile_put_json : cd_process_profile_put_text)(o->json ? &b : &all, r);
    if (o->json) cd_command_json(&all, "cdmpp.wrap", "cdmpp-profile", o->log, &b);
    FILE *f = o->out && strcmp(o->out, "-") ? fopen(o->out, "wb") : o->out ? stdout : stderr;
    bool good = f && !all.oom && fwrite(all.p, 1, all.n, f) == all.n;
    cd_buf_free(&all);
    if (f && f != stderr && f != stdout && fclose(f)) good = false;
    return good ? CDMPP_OK
                : CD_FAIL(err, EIO, "cannot write %.150s", o->out ? o->out : "to standard error");
}

cdmpp_status cd_main_profile_wrap(cd_main_profile *o, cdmpp_err *err) {
    cd_arena a = {0};
    cd_process_profile_report r;
    char **argv = cd_arena_zalloc(&a, o->operand.n + 1, sizeof *argv);
    bool good = argv != NULL;
    for (size_t i = 0; i < o->operand.n && good; i++) /* copies: posix_spawnp takes char *const * */
        good =
            (argv[i] = cd_str_dup(&a, (cd_str){o->operand.v[i], strlen(o->operand.v[i])})) != NULL;
    cdmpp_status st = good ? CDMPP_OK : CD_FAIL(err, ENOMEM, "arguments");
    if (!st) st = cd_process_profile_run(&a, argv, NULL, &r, err);
    if (!st) st = print_wrap(o, &r, err);
    if (!st) o->exit_code = r.signaled ? 128 + r.code : r.code; /* as a shell does */
    cd_arena_free(&a);
    return st;
}
