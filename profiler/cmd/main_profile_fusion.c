/* "fusion detect": which operators a back end runs as one program. */
#include <string.h>

#include "profiler/cmd/main_profile.h"
#include "profiler/detect/detect.h"

static const char *target_of(const cd_main_profile *o) {
    return o->target                                            ? o->target
           : o->fusion_backend == CD_MAIN_PROFILE_FUSION_OPENCL ? "opencl"
                                                                : "llvm";
}

/* A detection takes minutes: each answer is told when it is there. */
static void told(void *ctx, const cd_detect_test *t) {
    static const char *const word[] = {"undecided", "apart", "fused"};
    const cd_main_profile *o = ctx;
    cd_log_put(o->log, CD_LOG_INFO, "%s%s%s and %s: %s", t->before ? t->before : "",
               t->before ? "+" : "", t->first,
               strcmp(t->second, CD_FUSION_RULES_MANY) ? t->second : "several readers",
               word[t->answer]);
}

static cdmpp_status read_numbers(const cd_main_profile *o, cd_detect_options *d, cdmpp_err *err) {
    *d = (cd_detect_options){.operators = o->operators,
                             .chains = o->chains,
                             .alpha = 0.5,
                             .level = 0.99,
                             .repeats = (unsigned)o->repeats,
                             .channels = o->channels,
                             .size = o->input_size,
                             .stop = o->stop};
    CD_TRY(cd_option_number("alpha", o->alpha, 0.01, 1, &d->alpha, err));
    return cd_option_number("confidence", o->confidence, 0.5, 0.999999, &d->level, err);
}

cdmpp_status cd_main_profile_fusion_check(const cd_main_profile *o, cdmpp_err *err) {
    cd_detect_options d;
    const bool command = o->fusion_backend == CD_MAIN_PROFILE_FUSION_COMMAND;
    if (o->operand.n != 1 || strcmp(o->operand.v[0], "detect"))
        return CD_FAIL(err, EUSAGE, "fusion: expected detect, found '%.40s'",
                       o->operand.n ? o->operand.v[o->operand.n > 1] : "");
    if (command != (o->fusion_command != NULL))
        return CD_FAIL(err, EUSAGE,
                       command ? "--backend command: --command is missing"
                               : "--command goes with --backend command");
    if (command && o->planted) return CD_FAIL(err, EUSAGE, "--planted is for our executor");
    const cd_backend_kind *b = cd_backend_for_target((cd_str){target_of(o), strlen(target_of(o))});
    if (!command &&
        b != cd_backend_find(o->fusion_backend == CD_MAIN_PROFILE_FUSION_OPENCL ? "opencl" : "cpu"))
        return CD_FAIL(err, EUSAGE, "--target %.60s: not of this --backend", target_of(o));
    return read_numbers(o, &d, err);
}

/* The file of rules first: what is printed may be lost in a pipe. Undecided tests make exit status
 * 3 where they could not be measured. */
static cdmpp_status print(cd_main_profile *o, const cd_detect *d, cdmpp_err *err) {
    static const char *const name[] = {"cpu", "opencl", "command"};
    cd_buf rules = {0}, b = {0};
    for (uint32_t k = 0; k < d->n; k++) {
        if (!d->test[k].why.code) continue;
        cd_log_put(o->log, CD_LOG_WARNING, "%s and %s: %s", d->test[k].first, d->test[k].second,
                   d->test[k].why.msg);
        o->bad++;
    }
    if (d->apart)
        cd_log_put(o->log, CD_LOG_WARNING,
                   "%u pairs are not tested: no tensor can be read by both operators", d->apart);
    cdmpp_status st = cd_detect_json(&rules, d, name[o->fusion_backend], err);
    if (!st && !o->json) st = cd_detect_text(&b, d, err);
    if (!st && o->json) cd_buf_put(&b, rules.p, rules.n);
    cd_buf_puts(&rules, "\n");
    if (!st && o->out) st = cd_main_profile_write(o->out, &rules, err);
    cd_buf_free(&rules);
    if (!st) return cd_main_profile_print(o, "cdmpp.profile_fusion", &b, err);
    cd_buf_free(&b);
    return st;
}

static cdmpp_status detect(cd_main_profile *o, const cd_detect_backend *b, cdmpp_err *err) {
    cd_detect_options d;
    cd_detect *found = NULL;
    CD_TRY(read_numbers(o, &d, err));
    d.told = told;
    d.ctx = o;
    cdmpp_status st = cd_detect_run(b, &d, &found, err);
    if (!st) st = print(o, found, err);
    cd_detect_free(found);
    return st;
}

/* One thread, if nothing else is said: its own time is read, so that other load is not in it. */
static cdmpp_status on_executor(cd_main_profile *o, cdmpp_err *err) {
    cd_measure_options mo = cd_main_profile_measure_options(o);
    cd_detect_backend b;
    cd_fusion_rules planted = {0};
    mo.threads = o->threads > 0 ? o->threads : 1;
    mo.jobs = o->jobs;
    cd_detect_executor_options eo = {.target = target_of(o),
                                     .device = o->device,
                                     .hardware = cd_main_profile_hardware(target_of(o)),
                                     .threads = mo.threads,
                                     .trials = (uint32_t)o->trials,
                                     .pool = cd_main_profile_pool(o),
                                     .seed = (uint64_t)o->seed,
                                     .budget_s = o->budget_ms * 1e-3,
                                     .planted = o->planted ? &planted : NULL,
                                     .stop = o->stop};
    const bool cpu = o->fusion_backend == CD_MAIN_PROFILE_FUSION_CPU;
    cd_describe_entry here;
    cd_detect_executor *x = NULL;
    if (cpu) eo.hardware = cd_target_hardware(false, mo.threads, 64);
    cdmpp_status st = o->planted ? cd_fusion_rules_read(o->planted, &planted, err) : CDMPP_OK;
    if (!st) st = cd_measure_open(&mo, &eo.measure, err);
    if (!st && cpu) eo.described = cd_main_profile_pool_device(o, mo.threads, &here);
    if (!st) st = cd_detect_executor_open(&eo, &x, &b, err);
    if (!st) st = detect(o, &b, err);
    cd_detect_executor_close(x);
    cd_measure_close(eo.measure);
    cd_fusion_rules_free(&planted);
    return st;
}

cdmpp_status cd_main_profile_fusion(cd_main_profile *o, cdmpp_err *err) {
    if (o->fusion_backend != CD_MAIN_PROFILE_FUSION_COMMAND) return on_executor(o, err);
    cd_detect_command c = {.command = o->fusion_command,
                           .limit_s = o->timeout_s ? o->timeout_s : 120,
                           .stop = o->stop};
    const cd_detect_backend b = cd_detect_command_backend(&c);
    return detect(o, &b, err);
}
