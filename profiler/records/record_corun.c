/* Measures pairs and groups of the programs of records. All programs are compiled before the first
 * pair runs: a compiler beside a measured program would slow it down. */
#include "profiler/records/record_corun.h"

#include "profiler/host/host.h"

static cdmpp_status build_all(cd_record_corun *c, cd_record_maker *maker, cd_measure *m,
                              cdmpp_err *err) {
    for (size_t i = 0; i < c->n; i++) {
        const cd_record_best *b = &c->best[i];
        const cd_recline l = {.path = b->path, .number = b->number, .text = b->text, .len = b->len};
        CD_TRY(cd_record_program_make(maker, &l, &c->job[i], err));
        CD_TRY(cd_record_program_code(maker, &c->job[i], err));
        c->item[i] = (cd_measure_item){
            .code = &c->job[i].code, .target = c->job[i].target, .threads = c->threads};
        if (c->job[i].why.code) cd_measure_result_fail(&c->item[i].out, 1, &c->job[i].why);
    }
    return cd_measure_build(m, c->item, c->n, err);
}

/* Which of these programs was not compiled, so that they have that error and are not run; n: all
 * were. */
static unsigned not_compiled(const cd_record_corun *c, const uint32_t *of, unsigned n) {
    for (unsigned k = 0; k < n; k++)
        if (c->item[of[k]].out.error_no) return k;
    return n;
}

static void note_failure(const cd_record_corun_options *o, cd_record_corun *c, uint32_t program,
                         int error_no, const cdmpp_err *why) {
    const cd_record_best *b = &c->best[program];
    if (!error_no) return;
    c->bad++;
    cd_record_listener_note(o->best.listener, "%s:%ld: error %d: %s", b->path, b->number, error_no,
                            why->msg);
}

static cdmpp_status measure_pair(const cd_record_corun_options *o, cd_record_corun *c,
                                 cd_record_corun_row *r, cdmpp_err *err) {
    const uint32_t of[] = {(uint32_t)r->first, (uint32_t)r->second};
    const unsigned bad = not_compiled(c, of, 2);
    cd_corun_policy p = o->policy;
    p.sharing = r->sharing;
    if (bad < 2)
        r->out = (cd_corun_pair){.error_no = c->item[of[bad]].out.error_no,
                                 .at = (int)bad,
                                 .err = c->item[of[bad]].out.err};
    else CD_TRY(cd_corun_run(&c->item[of[0]].build, &c->item[of[1]].build, &p, &r->out, err));
    note_failure(o, c, of[r->out.at], r->out.error_no, &r->out.err);
    return CDMPP_OK;
}

/* Each pair once, and each program with itself. */
static cdmpp_status measure_pairs(const cd_record_corun_options *o, cd_record_corun *c,
                                  cdmpp_err *err) {
    c->row = cd_arena_zalloc(&c->arena, c->n * (c->n + 1), sizeof *c->row);
    if (!c->row) return CD_FAIL(err, ENOMEM, "%zu programs", c->n);
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = i; k < c->n; k++)
            for (int how = CD_CORUN_DISJOINT; how <= CD_CORUN_SHARED; how++) {
                cd_record_corun_row *r = &c->row[c->n_row];
                *r = (cd_record_corun_row){
                    .first = i, .second = k, .sharing = (cd_corun_sharing)how};
                CD_TRY(measure_pair(o, c, r, err));
                c->n_row++;
            }
    return CDMPP_OK;
}

static cdmpp_status measure_group(const cd_record_corun_options *o, cd_record_corun *c,
                                  cd_record_corun_group *g, cdmpp_err *err) {
    const cd_build *build[CD_CORUN_GROUP];
    const unsigned bad = not_compiled(c, g->program, o->group);
    for (unsigned k = 0; k < o->group; k++) build[k] = &c->item[g->program[k]].build;
    if (bad < o->group)
        g->out = (cd_corun_group){.n = o->group,
                                  .error_no = c->item[g->program[bad]].out.error_no,
                                  .at = (int)bad,
                                  .err = c->item[g->program[bad]].out.err};
    else CD_TRY(cd_corun_group_run(build, o->group, c->places, &o->policy, &g->out, err));
    note_failure(o, c, g->program[g->out.at], g->out.error_no, &g->out.err);
    return CDMPP_OK;
}

static cdmpp_status measure_groups(const cd_record_corun_options *o, cd_record_corun *c,
                                   cdmpp_err *err) {
    const unsigned fit = (unsigned)(cd_affinity_count() / c->threads);
    c->places = fit < o->group ? fit : o->group;
    c->group = cd_arena_zalloc(&c->arena, o->n_group, sizeof *c->group);
    if (!c->group) return CD_FAIL(err, ENOMEM, "%u groups", o->n_group);
    for (size_t i = 0; i < o->n_group; i++) {
        cd_record_corun_group *g = &c->group[c->n_group];
        for (unsigned k = 0; k < o->group; k++)
            g->program[k] = (uint32_t)(cd_rng_at(o->seed, i * CD_CORUN_GROUP + k) % c->n);
        CD_TRY(measure_group(o, c, g, err));
        c->n_group++;
    }
    return CDMPP_OK;
}

static cdmpp_status corun(const cd_record_corun_options *o, cd_record_corun *c,
                          cd_record_maker *maker, cd_measure *m, cdmpp_err *err) {
    CD_TRY(cd_record_program_maker_open(maker, o->task_file, o->n_task_file, o->log, err));
    CD_TRY(cd_record_best_read(&c->arena, &o->best, c->best, &c->n, err));
    if (!c->n) return CD_FAIL(err, ENODATA, "no record to measure");
    CD_TRY(build_all(c, maker, m, err));
    if (!o->no_pairs) CD_TRY(measure_pairs(o, c, err));
    return o->group ? measure_groups(o, c, err) : CDMPP_OK;
}

cdmpp_status cd_record_corun_run(const cd_record_corun_options *o, cd_record_corun **out,
                                 cdmpp_err *err) {
    const int threads = o->policy.threads > 0 ? o->policy.threads : 1, cpus = cd_affinity_count();
    cd_record_maker maker = {.target = o->target, .dialect = CD_DIALECT_C, .isa = o->measure.isa};
    cd_measure *m = NULL;
    if (cpus < 2 * threads)
        return CD_FAIL(err, EUSAGE, "two programs of %d threads need %d processors, there are %d",
                       threads, 2 * threads, cpus);
    cd_record_corun *c = cd_mem_zalloc(1, sizeof *c);
    if (!c) return CD_FAIL(err, ENOMEM, "pairs");
    c->threads = threads;
    /* for its compilers; first of all, it forks */
    cdmpp_status st = cd_measure_open(&o->measure, &m, err);
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
