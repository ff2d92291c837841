/* Mode "records" of cdmpp-profile: the programs of measure records, checked, printed as source
 * code, or measured here or by --host. Mode "--worker": be what --host reaches. */
#include <string.h>

#include "profiler/cmd/main_profile.h"
#include "profiler/describe/describe.h"
#include "profiler/remote/remote.h"
#include "profiler/store/store.h"

static cdmpp_status check_hosts(const cd_main_profile *o, cdmpp_err *err) {
    if (!o->host.n)
        return o->port || o->transport || o->lease_s
                   ? CD_FAIL(err, EUSAGE, "--port, --transport and --lease go with --host")
                   : CDMPP_OK;
    if (o->dry_run || o->emit_source)
        return CD_FAIL(err, EUSAGE,
                       "--host measures: --dry-run and --emit-source do not go with it");
    return o->jobs || o->cache || o->cache_mb
               ? CD_FAIL(err, EUSAGE,
                         "--jobs, --cache and --cache-mb are about compilers of this machine: a "
                         "host has its own")
               : CDMPP_OK;
}

cdmpp_status cd_main_profile_records_check(const cd_main_profile *o, cdmpp_err *err) {
    cd_isa_choice c;
    CD_TRY(cd_main_profile_logs_check(o, "no records to read", err));
    if (o->dry_run && o->emit_source)
        return CD_FAIL(err, EUSAGE, "--dry-run and --emit-source do not go together");
    CD_TRY(check_hosts(o, err));
    if (o->check && o->no_check)
        return CD_FAIL(err, EUSAGE, "--check and --no-check do not go together");
    if (o->core_type >= 0 && (o->dry_run || o->emit_source))
        return CD_FAIL(
            err, EUSAGE,
            "--core-type is about measuring: --dry-run and --emit-source do not go with it");
    if (o->dialect >= 0 && !o->emit_source)
        return CD_FAIL(err, EUSAGE, "--dialect goes with --emit-source");
    if (o->isa && o->isa[0]) CD_TRY(cd_err_key(err, cd_isa_choose(o->isa, "", &c, err), "--isa"));
    for (size_t i = 0; o->rounds > 1 && i < o->operand.n; i++)
        if (!strcmp(o->operand.v[i], "-"))
            return CD_FAIL(err, EUSAGE, "--rounds: standard input is read once");
    return o->out || o->dry_run || o->emit_source
               ? CDMPP_OK
               : CD_FAIL(err, EUSAGE, "--out is missing (or --dry-run, --emit-source)");
}

/* ---- checked, printed ---- */
static cdmpp_status check(cd_main_profile *o, cd_record_maker *maker, cd_record_reader *file,
                          cdmpp_err *err) {
    cd_record_source_tally t = {0};
    cd_buf source = {0}, b = {0};
    const cd_record_listener l = cd_main_profile_listener(o);
    cdmpp_status st = cd_record_source_collect(maker, file, (size_t)o->limit, &l, o->stop,
                                               o->dry_run ? NULL : &source, &t, err);
    if (!st && o->dry_run) cd_record_source_put(&b, &t, o->json);
    if (!st)
        st = o->dry_run ? cd_main_profile_print(o, "cdmpp.profile_records", &b, err)
                        : cd_main_profile_write(o->out, &source, err);
    cd_buf_free(&source);
    if (!st && !t.lines) return CD_FAIL(err, ENODATA, "there is no record in the input");
    return st;
}

/* ---- measured ---- */
static cdmpp_status to_store(void *ctx, const cd_record_measured *m, cdmpp_err *err) {
    cd_store_measured *s = ctx;
    if (m->host) cd_store_measured_host(s, m->host, m->device);
    return cd_store_measured_add(s, m->record, m->task, m->result, m->line, err);
}

static cdmpp_status here(cd_main_profile *o, cd_measure *m, cd_record_maker *maker,
                         cd_record_reader *file, cd_record_output *out, cd_record_stats *sum,
                         cdmpp_err *err) {
    const cd_record_listener l = cd_main_profile_listener(o);
    const cd_record_measure_options ro = {.measure = cd_main_profile_measure_options(o),
                                          .path = o->operand.v,
                                          .n_path = o->operand.n,
                                          .limit = (size_t)o->limit,
                                          .rounds = o->rounds,
                                          .threads = o->threads,
                                          .jobs = o->jobs,
                                          .core = cd_main_profile_core(o),
                                          .listener = &l};
    return cd_record_measure_run(&ro, m, maker, file, out, sum, err);
}

static cdmpp_status remote(cd_main_profile *o, cd_record_maker *maker, cd_record_reader *file,
                           cd_record_output *out, cd_remote_records_tally *t, cdmpp_err *err) {
    const cd_record_listener l = cd_main_profile_listener(o);
    const cd_remote_records_options ro = {.host = o->host.v,
                                          .n_host = o->host.n,
                                          .port = o->port,
                                          .transport = o->transport,
                                          .lease_s = o->lease_s,
                                          .measure = cd_main_profile_measure_options(o),
                                          .path = o->operand.v,
                                          .n_path = o->operand.n,
                                          .limit = (size_t)o->limit,
                                          .rounds = o->rounds,
                                          .threads = o->threads,
                                          .core = cd_main_profile_core(o),
                                          .listener = &l};
    const cdmpp_status st = cd_remote_records_run(&ro, maker, file, out, t, err);
    o->bad += t->failed;
    return st;
}

static cdmpp_status print_measured(cd_main_profile *o, cd_record_stats *sum,
                                   const cd_remote_records_tally *t, cdmpp_err *err) {
    cd_buf b = {0};
    if (!(o->host.n ? t->read : sum->lines) && !o->bad && !*o->stop)
        return CD_FAIL(err, ENODATA, "nothing was measured: there is no record in the input");
    if (o->host.n) {
        cd_remote_records_put(&b, t, o->bad, o->json);
        return cd_main_profile_print(o, "cdmpp.profile_remote", &b, err);
    }
    sum->bad = o->bad;
    o->bad += sum->failed;
    (o->json ? cd_record_stats_json : cd_record_stats_text)(&b, sum, cd_clock_wall());
    return cd_main_profile_print(o, "cdmpp.profile_records", &b, err);
}

/* The outputs around either way of measuring. */
static cdmpp_status measure(cd_main_profile *o, cd_record_maker *maker, cd_record_reader *file,
                            cdmpp_err *err) {
    const cd_measure_options mo = cd_main_profile_measure_options(o);
    const cd_store_measured_options so = {o->store, o->device, o->cflags, o->cold || o->cool,
                                          cd_main_profile_core(o)};
    cd_record_output_options oo = {.path = o->out, .retry = o->retry, .stats = o->stats};
    cd_measure *m = NULL;
    cd_record_output *out = NULL;
    cd_store_measured *store = NULL;
    cd_record_stats sum;
    cd_remote_records_tally t = {0};
    cd_record_stats_begin(&sum, cd_clock_wall());
    /* first of all: it forks */
    cdmpp_status st = o->host.n ? CDMPP_OK : cd_measure_open(&mo, &m, err);
    if (!st) st = cd_record_output_open(&oo, &out, err);
    if (!st && o->store) st = cd_store_measured_open(&so, &store, err);
    if (store) oo.more = to_store, oo.ctx = store;
    if (!st)
        st = o->host.n ? remote(o, maker, file, out, &t, err)
                       : here(o, m, maker, file, out, &sum, err);
    cd_measure_close(m);
    const cdmpp_status closed = cd_record_output_close(out, st ? NULL : err);
    if (!st) st = closed;
    const cdmpp_status kept = cd_store_measured_close(store, st ? NULL : err);
    if (!st) st = kept;
    return st ? st : print_measured(o, &sum, &t, err);
}

cdmpp_status cd_main_profile_records(cd_main_profile *o, cdmpp_err *err) {
    cd_describe_namer namer = {.log = o->log, .gpu = o->device, .core = cd_main_profile_core(o)};
    cd_record_maker maker = {.target = o->target, .dialect = o->dialect, .isa = o->isa};
    const bool measures = !o->dry_run && !o->emit_source;
    maker.reference = measures && !o->no_check;
    if (measures) maker.threads = o->threads;
    if (measures && !o->host.n)
        maker.device = cd_describe_namer_ask, maker.ctx = &namer, maker.cpus = cd_affinity_count();
    cd_record_reader *file = NULL;
    cdmpp_status st = cd_record_program_maker_open(&maker, o->task.v, o->task.n, o->log, err);
    if (!st) st = cd_record_reader_open(o->operand.v, o->operand.n, &file, err);
    if (!st)
        st = o->dry_run || o->emit_source ? check(o, &maker, file, err)
                                          : measure(o, &maker, file, err);
    cd_record_reader_close(file);
    cd_record_program_maker_close(&maker);
    return st;
}

cdmpp_status cd_main_profile_worker_check(const cd_main_profile *o, cdmpp_err *err) {
    return o->operand.n ? CD_FAIL(err, EUSAGE, "--worker: unexpected '%.60s'", o->operand.v[0])
                        : CDMPP_OK;
}

cdmpp_status cd_main_profile_worker(cd_main_profile *o, cdmpp_err *err) {
    const cd_remote_worker_options wo = {cd_main_profile_measure_options(o), o->dialect, o->threads,
                                         cd_main_profile_core(o)};
    return cd_remote_worker_run(&wo, err);
}
