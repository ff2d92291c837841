/* Measures pairs and groups of the programs of records. All programs are compiled before the first
 * pair runs: a compiler beside a measured program would slow it down. */
#include "profiler/records/record_corun.h"

#include <string.h>

#include "base/text/text.h"
#include "profiler/host/host.h"
#include "profiler/records/record_together.h"

/* Prints measured pairs: CSV for later use, JSON for programs, a table for people. */

static const char *sharing_of(const cd_record_corun_row *r) {
    return r->sharing == CD_CORUN_DISJOINT ? "disjoint" : "shared";
}

/* A field of CSV and its comma, quoted: keys hold quotes and commas. */
static void put_quoted(cd_buf *b, cd_str t) {
    cd_csv_fields_put(b, t.p, t.n);
    cd_buf_puts(b, ",");
}

/* A pair that failed has empty fields for its times, and an error number. */
void cd_record_corun_csv(cd_buf *b, const cd_record_corun *c) {
    cd_buf_puts(b, "first,second,sharing,threads,first_solo_s,second_solo_s,first_corun_s,second_"
                   "corun_s,first_slowdown,second_slowdown,spread,"
                   "first_flop,second_flop,first_bytes,second_bytes,error_no\n");
    for (size_t i = 0; i < c->n_row; i++) {
        const cd_record_corun_row *r = &c->row[i];
        const cd_corun_pair *p = &r->out;
        put_quoted(b, c->best[r->first].key);
        put_quoted(b, c->best[r->second].key);
        cd_buf_putf(b, "%s,%d,", sharing_of(r), c->threads);
        if (p->error_no) cd_buf_puts(b, ",,,,,,,");
        else
            cd_buf_putf(b, "%.9g,%.9g,%.9g,%.9g,%.6g,%.6g,%.4g,", p->solo_s[0], p->solo_s[1],
                        p->corun_s[0], p->corun_s[1], p->slowdown[0], p->slowdown[1], p->spread);
        cd_buf_putf(b, "%.12g,%.12g,%lld,%lld,%d\n", c->job[r->first].flop, c->job[r->second].flop,
                    (long long)cd_corun_bytes(&c->job[r->first].code),
                    (long long)cd_corun_bytes(&c->job[r->second].code), p->error_no);
    }
}

static void put_program(cd_buf *b, const cd_record_corun *c, size_t i) {
    const cd_record_best *x = &c->best[i];
    cd_buf_puts(b, "{\"workload_key\":");
    cd_buf_put_json_str(b, x->key.p, x->key.n);
    cd_buf_puts(b, ",\"file\":");
    cd_buf_put_json_str(b, x->path, strlen(x->path));
    cd_buf_putf(b, ",\"line\":%ld,\"flop\":%.12g,\"bytes\":%lld}", x->number, c->job[i].flop,
                (long long)cd_corun_bytes(&c->job[i].code));
}

/* Pairs name programs by their position, so that long workload keys stand there once. */
void cd_record_corun_json(cd_buf *b, const cd_record_corun *c) {
    cd_buf_putf(b, "{\"processors\":%d,\"threads\":%d,\"programs\":[", cd_affinity_count(),
                c->threads);
    for (size_t i = 0; i < c->n; i++) {
        if (i) cd_buf_puts(b, ",");
        put_program(b, c, i);
    }
    cd_buf_puts(b, "],\"pairs\":[");
    for (size_t i = 0; i < c->n_row; i++) {
        const cd_record_corun_row *r = &c->row[i];
        const cd_corun_pair *p = &r->out;
        cd_buf_putf(b, "%s{\"first\":%zu,\"second\":%zu,\"sharing\":\"%s\",\"error_no\":%d",
                    i ? "," : "", r->first, r->second, sharing_of(r), p->error_no);
        if (!p->error_no)
            cd_buf_putf(b,
                        ",\"solo_s\":[%.9g,%.9g],\"corun_s\":[%.9g,%.9g],\"slowdown\":[%.6g,%.6g],"
                        "\"spread\":%.4g",
                        p->solo_s[0], p->solo_s[1], p->corun_s[0], p->corun_s[1], p->slowdown[0],
                        p->slowdown[1], p->spread);
        cd_buf_puts(b, "}");
    }
    cd_buf_puts(b, "]}");
}

void cd_record_corun_text(cd_buf *b, const cd_record_corun *c) {
    for (size_t i = 0; i < c->n; i++)
        cd_buf_putf(b, "%3zu  %.*s\n", i, (int)(c->best[i].key.n < 110 ? c->best[i].key.n : 110),
                    c->best[i].key.p);
    cd_buf_puts(
        b, "first second  sharing   alone, ms           together, ms        slowdown     spread\n");
    for (size_t i = 0; i < c->n_row; i++) {
        const cd_record_corun_row *r = &c->row[i];
        const cd_corun_pair *p = &r->out;
        cd_buf_putf(b, "%5zu %6zu  %-8s", r->first, r->second, sharing_of(r));
        if (p->error_no) cd_buf_putf(b, "  error %d\n", p->error_no);
        else /* times in milliseconds, the spread in percent */
            cd_buf_putf(b, "  %9.4f %9.4f  %9.4f %9.4f  %5.2f %5.2f  %5.1f %%\n",
                        p->solo_s[0] * 1e3, p->solo_s[1] * 1e3, p->corun_s[0] * 1e3,
                        p->corun_s[1] * 1e3, p->slowdown[0], p->slowdown[1], 100 * p->spread);
    }
}

/* Measures the programs of records alone with several numbers of threads, and keeps them compiled,
 * so that they can be run together. */

/* 1, 2, 3, 4, 6, 8, 12, 16 ... and the last one itself. */
static void choose_counts(cd_record_together *t) {
    for (int k = 1; k < t->threads && t->n_count < CD_RECORD_TOGETHER_COUNTS - 1;
         k = k < 2         ? k + 1
             : k & (k - 1) ? k / 3 * 4
                           : k / 2 * 3)
        t->count[t->n_count++] = k;
    t->count[t->n_count++] = t->threads;
}

static cdmpp_status make(cd_record_together *t, size_t at, int count, cdmpp_err *err) {
    const cd_record_best *b = &t->best[at];
    cd_record_program *job = &t->job[at][count];
    cd_measure_item *item = &t->item[at][count];
    cd_record r;
    cd_buf line = {0};
    CD_TRY(cd_record_read(&t->arena, b->text, b->len, &r, err));
    if (r.has_hardware) r.hardware.num_cores = t->count[count];
    cdmpp_status st = cd_record_write(&line, &r, err);
    if (!st)
        st = cd_record_program_make(
            &t->maker,
            &(cd_recline){.path = b->path, .number = b->number, .text = line.p, .len = line.n - 1},
            job, err);
    if (!st) st = cd_record_program_code(&t->maker, job, err);
    cd_buf_free(&line);
    *item = (cd_measure_item){.code = &job->code,
                              .arg = job->arg,
                              .reference = &job->reference,
                              .target = job->target,
                              .threads = t->count[count]};
    if (!st && job->why.code) cd_measure_result_fail(&item->out, 1, &job->why);
    return st;
}

static cdmpp_status alone(const cd_record_together_options *o, cd_record_together *t, size_t at,
                          cdmpp_err *err) {
    for (int k = 0; k < t->n_count; k++) CD_TRY(make(t, at, k, err));
    CD_TRY(cd_measure_build(t->measure, t->item[at], (size_t)t->n_count, err));
    for (int k = 0; k < t->n_count; k++) {
        const cd_measure_item *i = &t->item[at][k];
        if (!i->out.error_no) CD_TRY(cd_measure_run(t->measure, &t->item[at][k], err));
        if (!i->out.error_no) continue;
        t->bad++;
        cd_record_listener_note(o->best.listener, "%s:%ld: %d threads: error %d: %s",
                                t->best[at].path, t->best[at].number, t->count[k], i->out.error_no,
                                i->out.err.msg);
    }
    return CDMPP_OK;
}

static cdmpp_status measure(const cd_record_together_options *o, cd_record_together *t,
                            cdmpp_err *err) {
    cd_measure_options mo = o->measure;
    const int cpus = cd_affinity_count();
    t->threads = o->threads > 0 ? o->threads : cpus;
    if (t->threads > cpus)
        return CD_FAIL(err, EUSAGE, "%d threads need as many processors, there are %d", t->threads,
                       cpus);
    mo.threads = t->threads;
    mo.pin = false; /* a worker that is pinned has a fixed number of processors */
    choose_counts(t);
    CD_TRY(cd_measure_open(&mo, &t->measure, err)); /* first of all, it forks */
    t->maker = (cd_record_maker){
        .target = o->target, .dialect = CD_DIALECT_C, .isa = o->measure.isa, .reference = true};
    CD_TRY(cd_record_program_maker_open(&t->maker, o->task_file, o->n_task_file, o->log, err));
    CD_TRY(cd_record_best_read(&t->arena, &o->best, t->best, &t->n, err));
    if (!t->n) return CD_FAIL(err, ENODATA, "no record to measure");
    for (size_t k = 0; k < t->n; k++) CD_TRY(alone(o, t, k, err));
    return CDMPP_OK;
}

cdmpp_status cd_record_together_measure(const cd_record_together_options *o,
                                        cd_record_together **out, cdmpp_err *err) {
    cd_record_together *t = *out = cd_mem_zalloc(1, sizeof *t);
    if (!t) return CD_FAIL(err, ENOMEM, "programs");
    return measure(o, t, err);
}

int cd_record_together_find(const cd_record_together *t, size_t at, int threads) {
    const cd_measure_item *i = t->item[at];
    int found = -1;
    for (int k = 0; k < t->n_count && t->count[k] <= threads; k++)
        if (!i[k].out.error_no &&
            (found < 0 || i[k].out.time.median_s < i[found].out.time.median_s))
            found = k;
    return found;
}

bool cd_record_together_way(const cd_record_together *t, const uint32_t *threads, bool at_once,
                            cd_corun_way *out) {
    *out = (cd_corun_way){.n = (unsigned)t->n, .at_once = at_once};
    for (size_t k = 0; k < t->n; k++) {
        const int at = cd_record_together_find(t, k, (int)threads[k]);
        if (at < 0) return false;
        out->build[k] = &t->item[k][at].build;
        out->threads[k] = t->count[at];
    }
    return true;
}

void cd_record_together_free(cd_record_together *t) {
    if (!t) return;
    cd_measure_close(t->measure);
    for (size_t i = 0; i < t->n; i++)
        for (int k = 0; k < t->n_count; k++) cd_record_program_free(&t->job[i][k]);
    cd_record_program_maker_close(&t->maker);
    cd_arena_free(&t->arena);
    cd_mem_free(t);
}

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
