/* Measures pairs of the programs of records. All programs are compiled before the first pair runs: a compiler beside a measured program
 * would slow it down. */
#include "profiler/records/record_corun.h"

#include "profiler/host/host.h"

static cdmpp_status build_all(cd_record_corun *c, cd_record_maker *maker, cd_measure *m, cdmpp_err *err) {
    for (size_t i = 0; i < c->n; i++) {
        const cd_record_best *b = &c->best[i];
        const cd_recline l = {.path = b->path, .number = b->number, .text = b->text, .len = b->len};
        CD_TRY(cd_record_program_make(maker, &l, &c->job[i], err));
        CD_TRY(cd_record_program_code(maker, &c->job[i], err));
        c->item[i] = (cd_measure_item){.code = &c->job[i].code, .target = c->job[i].target, .threads = c->threads};
        if (c->job[i].why.code) cd_measure_result_fail(&c->item[i].out, 1, &c->job[i].why);
    }
    return cd_measure_build(m, c->item, c->n, err);
}

/* True: one of the two was not compiled, so the pair has that error and is not run. */
static bool not_compiled(const cd_record_corun *c, cd_record_corun_row *r) {
    const size_t of[] = {r->first, r->second};
    for (int k = 0; k < 2; k++) {
        const cd_measure_result *m = &c->item[of[k]].out;
        if (!m->error_no) continue;
        r->out = (cd_corun_pair){.error_no = m->error_no, .at = k, .err = m->err};
        return true;
    }
    return false;
}

static void note_failure(const cd_record_corun_options *o, cd_record_corun *c, const cd_record_corun_row *r) {
    const cd_record_best *b = &c->best[r->out.at ? r->second : r->first];
    if (!r->out.error_no) return;
    c->bad++;
    cd_record_listener_note(o->best.listener, "%s:%ld: error %d: %s", b->path, b->number, r->out.error_no, r->out.err.msg);
}

/* Each pair once, and each program with itself. */
static cdmpp_status measure_all(const cd_record_corun_options *o, cd_record_corun *c, cdmpp_err *err) {
    cd_corun_policy p = o->policy;
    c->row = cd_arena_zalloc(&c->arena, c->n * (c->n + 1), sizeof *c->row);
    if (!c->row) return CD_FAIL(err, ENOMEM, "%zu programs", c->n);
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = i; k < c->n; k++)
            for (int how = CD_CORUN_DISJOINT; how <= CD_CORUN_SHARED; how++) {
                cd_record_corun_row *r = &c->row[c->n_row];
                *r = (cd_record_corun_row){.first = i, .second = k, .sharing = p.sharing = (cd_corun_sharing)how};
                if (!not_compiled(c, r)) CD_TRY(cd_corun_run(&c->item[i].build, &c->item[k].build, &p, &r->out, err));
                note_failure(o, c, r);
                c->n_row++;
            }
    return CDMPP_OK;
}

static cdmpp_status corun(const cd_record_corun_options *o, cd_record_corun *c, cd_record_maker *maker, cd_measure *m, cdmpp_err *err) {
    CD_TRY(cd_record_program_maker_open(maker, o->task_file, o->n_task_file, o->log, err));
    CD_TRY(cd_record_best_read(&c->arena, &o->best, c->best, &c->n, err));
    if (!c->n) return CD_FAIL(err, ENODATA, "no record to measure");
    CD_TRY(build_all(c, maker, m, err));
    return measure_all(o, c, err);
}

cdmpp_status cd_record_corun_run(const cd_record_corun_options *o, cd_record_corun **out, cdmpp_err *err) {
    const int threads = o->policy.threads, cpus = cd_affinity_count();
    cd_record_maker maker = {.target = o->target, .dialect = CD_DIALECT_C, .isa = o->measure.isa};
    cd_measure *m = NULL;
    if (cpus < 2 * threads) return CD_FAIL(err, EUSAGE, "two programs of %d threads need %d processors, there are %d", threads, 2 * threads, cpus);
    cd_record_corun *c = cd_mem_zalloc(1, sizeof *c);
    if (!c) return CD_FAIL(err, ENOMEM, "pairs");
    c->threads = threads;
    cdmpp_status st = cd_measure_open(&o->measure, &m, err); /* for its compilers; first of all, it forks */
    if (!st) st = corun(o, c, &maker, m, err);
    cd_measure_close(m);
    cd_record_program_maker_close(&maker);
    if (st) cd_record_corun_free(c);
    else *out = c;
    return st;
}

void cd_record_corun_free(cd_record_corun *c) {
    if (!c) return;
    for (size_t i = 0; i < c->n; i++) cd_record_program_free(&c->job[i]);
    cd_arena_free(&c->arena);
    cd_mem_free(c);
}
