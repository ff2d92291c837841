/* Mode "corun" of cdmpp-profile: pairs of programs, alone and at the same time. */
#include <stdio.h>
#include <string.h>

#include "base/io/io.h"
#include "base/text/text.h"
#include "profiler/host/host.h"
#include "profiler/measure/measure.h"
#include "profiler/cmd/main_profile.h"
#include "profiler/records/records.h"

enum { MOST = 64, USUAL = 6 };

cdmpp_status cd_main_profile_corun_check(const cd_main_profile *o, cdmpp_err *err) {
    if (!o->task.n) return CD_FAIL(err, EUSAGE, "--tasks is missing");
    if (!o->operand.n) return CD_FAIL(err, EUSAGE, "no records to read");
    if (o->limit > MOST) return CD_FAIL(err, EUSAGE, "--limit: at most %d workloads in one table", MOST);
    if (o->rounds > CD_CORUN_ROUNDS) return CD_FAIL(err, EUSAGE, "--rounds: at most %d", CD_CORUN_ROUNDS);
    return CDMPP_OK;
}

typedef struct {
    cd_str key;
    char *text;                 /* the fastest record's line */
    size_t len;
    double cost_s;
    char *path;
    long number;
} best;

typedef struct {
    size_t first, second;
    cd_corun_sharing sharing;
    cd_corun_pair out;
} row;

typedef struct {
    cd_main_profile *o;
    cd_measure *m;
    cd_task_registry *tasks;
    cd_program *program;
    cd_arena line, arena;
    best best[MOST];
    cd_record_program job[MOST];
    cd_measure_item item[MOST];
    size_t n, most, n_row;
    int threads;
    row *row;
} state;

/* ---- the programs: the fastest record of every workload, of those that come first ---- */

static best *place_of(state *s, cd_str key) {
    for (size_t i = 0; i < s->n; i++)
        if (s->best[i].key.n == key.n && !memcmp(s->best[i].key.p, key.p, key.n)) return &s->best[i];
    return s->n < s->most ? &s->best[s->n] : NULL;
}

static cdmpp_status look_at(state *s, const cd_recline *l, cdmpp_err *err) {
    cd_record r;
    CD_TRY(cd_record_read(&s->line, l->text, l->len, &r, err));
    best *b = place_of(s, r.workload_key);
    if (!b || (s->o->workload && !cd_str_is(r.workload_key, s->o->workload))) return CDMPP_OK;
    const bool fresh = b == &s->best[s->n];
    if (!fresh && cd_record_program_cost_s(&r) >= b->cost_s) return CDMPP_OK;
    const best now = {.key = {cd_str_dup(&s->arena, r.workload_key), r.workload_key.n}, .text = cd_str_dup(&s->arena, (cd_str){l->text, l->len}),
                      .len = l->len, .cost_s = cd_record_program_cost_s(&r), .path = cd_str_dup(&s->arena, (cd_str){l->path, strlen(l->path)}), .number = l->number};
    if (!now.key.p || !now.text || !now.path) return CD_FAIL(err, ENOMEM, "record");
    *b = now;
    s->n += fresh;
    return CDMPP_OK;
}

static cdmpp_status read_all(state *s, cdmpp_err *err) {
    cd_record_reader *f = NULL;
    CD_TRY(cd_record_reader_open(s->o->operand.v, s->o->operand.n, &f, err));
    cdmpp_status st = CDMPP_OK;
    while (!st && !*s->o->stop) {
        cdmpp_err why = {0};
        cd_recline l = {0};
        cdmpp_status got = cd_record_reader_next(f, &l, &why);
        if (!got && !l.text) break;
        if (!got) got = cd_err_at(&why, look_at(s, &l, &why), l.path, l.number);
        if (got) st = cd_main_profile_bad(s->o, &why, NULL, err);
        cd_arena_reset(&s->line);
    }
    cd_record_reader_close(f);
    if (!st && !s->n) st = CD_FAIL(err, ENODATA, "no record to measure");
    return st;
}

static cdmpp_status build_all(state *s, cdmpp_err *err) {
    cd_recmaker maker = {.tasks = s->tasks, .program = s->program, .target = s->o->target, .dialect = CD_DIALECT_C, .isa = s->o->isa};
    for (size_t i = 0; i < s->n; i++) {
        const best *b = &s->best[i];
        const cd_recline l = {.path = b->path, .number = b->number, .text = b->text, .len = b->len};
        CD_TRY(cd_record_program_make(&maker, &l, &s->job[i], err));
        CD_TRY(cd_record_program_code(&maker, &s->job[i], err));
        s->item[i] = (cd_measure_item){.code = &s->job[i].code, .target = s->job[i].target, .threads = s->threads};
        if (s->job[i].why.code) cd_measure_result_fail(&s->item[i].out, 1, &s->job[i].why);
    }
    return cd_measure_build(s->m, s->item, s->n, err);
}

/* ---- the pairs ---- */

/* What cannot be run at all is no pair's fault. */
static bool unfit(const state *s, row *r) {
    const size_t who[] = {r->first, r->second};
    for (int k = 0; k < 2; k++) {
        const cd_measure_result *m = &s->item[who[k]].out;
        if (!m->error_no) continue;
        r->out = (cd_corun_pair){.error_no = m->error_no, .at = k, .err = m->err};
        return true;
    }
    return false;
}

static cdmpp_status measure_pair(state *s, row *r, cdmpp_err *err) {
    const cd_main_profile *o = s->o;
    const cd_corun_policy p = {.sharing = r->sharing, .threads = s->threads, .window_s = o->budget_ms * 1e-3, .rounds = (unsigned)o->rounds,
                               .limit_s = o->timeout_s, .stop = o->stop};
    if (!unfit(s, r)) CD_TRY(cd_corun_run(&s->item[r->first].build, &s->item[r->second].build, &p, &r->out, err));
    s->o->bad += r->out.error_no != 0;
    if (r->out.error_no) {
        const best *b = &s->best[r->out.at ? r->second : r->first];
        cd_log_put(o->log, CD_LOG_WARNING, "%s:%ld: error %d: %s", b->path, b->number, r->out.error_no, r->out.err.msg);
    }
    return CDMPP_OK;
}

static cdmpp_status measure_all(state *s, cdmpp_err *err) {
    s->row = cd_arena_zalloc(&s->arena, s->n * (s->n + 1), sizeof *s->row);
    if (!s->row) return CD_FAIL(err, ENOMEM, "%zu programs", s->n);
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = i; k < s->n; k++)
            for (int how = CD_CORUN_DISJOINT; how <= CD_CORUN_SHARED; how++) {
                row *r = &s->row[s->n_row];
                *r = (row){.first = i, .second = k, .sharing = (cd_corun_sharing)how};
                CD_TRY(measure_pair(s, r, err));
                s->n_row++;
            }
    return CDMPP_OK;
}

/* ---- telling ---- */

static const char *sharing_of(const row *r) { return r->sharing == CD_CORUN_DISJOINT ? "disjoint" : "shared"; }

/* RFC 4180: keys have quotes and commas. */
static void put_quoted(cd_buf *b, cd_str t) {
    cd_buf_puts(b, "\"");
    for (size_t i = 0; i < t.n; i++) cd_buf_puts(b, t.p[i] == '"' ? "\"\"" : (char[]){t.p[i], 0});
    cd_buf_puts(b, "\",");
}

static void put_csv(cd_buf *b, const state *s) {
    cd_buf_puts(b, "first,second,sharing,threads,first_solo_s,second_solo_s,first_corun_s,second_corun_s,first_slowdown,second_slowdown,spread,"
                   "first_flop,second_flop,first_bytes,second_bytes,error_no\n");
    for (size_t i = 0; i < s->n_row; i++) {
        const row *r = &s->row[i];
        const cd_corun_pair *p = &r->out;
        put_quoted(b, s->best[r->first].key);
        put_quoted(b, s->best[r->second].key);
        cd_buf_putf(b, "%s,%d,", sharing_of(r), s->threads);
        if (p->error_no) cd_buf_puts(b, ",,,,,,,");
        else cd_buf_putf(b, "%.9g,%.9g,%.9g,%.9g,%.6g,%.6g,%.4g,", p->solo_s[0], p->solo_s[1], p->corun_s[0], p->corun_s[1], p->slowdown[0], p->slowdown[1], p->spread);
        cd_buf_putf(b, "%.12g,%.12g,%lld,%lld,%d\n", s->job[r->first].flop, s->job[r->second].flop, (long long)cd_corun_bytes(&s->job[r->first].code),
                    (long long)cd_corun_bytes(&s->job[r->second].code), p->error_no);
    }
}

static void put_program(cd_buf *b, const state *s, size_t i) {
    const best *x = &s->best[i];
    cd_buf_puts(b, "{\"workload_key\":");
    cd_buf_put_json_str(b, x->key.p, x->key.n);
    cd_buf_puts(b, ",\"file\":");
    cd_buf_put_json_str(b, x->path, strlen(x->path));
    cd_buf_putf(b, ",\"line\":%ld,\"flop\":%.12g,\"bytes\":%lld}", x->number, s->job[i].flop, (long long)cd_corun_bytes(&s->job[i].code));
}

static void put_json(cd_buf *b, const state *s) {
    cd_buf_putf(b, "{\"processors\":%d,\"threads\":%d,\"programs\":[", cd_affinity_count(), s->threads);
    for (size_t i = 0; i < s->n; i++) {
        if (i) cd_buf_puts(b, ",");
        put_program(b, s, i);
    }
    cd_buf_puts(b, "],\"pairs\":[");
    for (size_t i = 0; i < s->n_row; i++) {
        const row *r = &s->row[i];
        const cd_corun_pair *p = &r->out;
        cd_buf_putf(b, "%s{\"first\":%zu,\"second\":%zu,\"sharing\":\"%s\",\"error_no\":%d", i ? "," : "", r->first, r->second, sharing_of(r), p->error_no);
        if (!p->error_no)
            cd_buf_putf(b, ",\"solo_s\":[%.9g,%.9g],\"corun_s\":[%.9g,%.9g],\"slowdown\":[%.6g,%.6g],\"spread\":%.4g", p->solo_s[0], p->solo_s[1], p->corun_s[0],
                        p->corun_s[1], p->slowdown[0], p->slowdown[1], p->spread);
        cd_buf_puts(b, "}");
    }
    cd_buf_puts(b, "]}");
}

static void put_text(cd_buf *b, const state *s) {
    for (size_t i = 0; i < s->n; i++) cd_buf_putf(b, "%3zu  %.*s\n", i, (int)(s->best[i].key.n < 110 ? s->best[i].key.n : 110), s->best[i].key.p);
    cd_buf_puts(b, "first second  sharing   alone, ms           together, ms        slowdown     spread\n");
    for (size_t i = 0; i < s->n_row; i++) {
        const row *r = &s->row[i];
        const cd_corun_pair *p = &r->out;
        cd_buf_putf(b, "%5zu %6zu  %-8s", r->first, r->second, sharing_of(r));
        if (p->error_no) cd_buf_putf(b, "  error %d\n", p->error_no);
        else cd_buf_putf(b, "  %9.4f %9.4f  %9.4f %9.4f  %5.2f %5.2f  %5.1f %%\n", p->solo_s[0] * 1e3, p->solo_s[1] * 1e3, p->corun_s[0] * 1e3, p->corun_s[1] * 1e3,
                         p->slowdown[0], p->slowdown[1], 100 * p->spread);
    }
}

static cdmpp_status tell(const state *s, cdmpp_err *err) {
    cd_buf b = {0}, all = {0};
    cdmpp_status st = CDMPP_OK;
    if (s->o->out) {
        put_csv(&b, s);
        if (b.oom) st = CD_FAIL(err, ENOMEM, "table");
        else st = cd_file_write(s->o->out, b.p, b.n, err);
        cd_buf_clear(&b);
    }
    if (st) return cd_buf_free(&b), st;
    if (!s->o->json) {
        put_text(&b, s);
        return cd_command_print(&b, err);
    }
    put_json(&b, s);
    cd_command_json(&all, "cdmpp.profile_corun", "cdmpp-profile", &b);
    return cd_command_print(&all, err);
}

static cdmpp_status all(state *s, cdmpp_err *err) {
    const cd_main_profile *o = s->o;
    const cd_measure_options m = cd_main_profile_measure_options(o);
    const int cpus = cd_affinity_count();
    if (cpus < 2 * s->threads) return CD_FAIL(err, EUSAGE, "two programs of %d threads need %d processors, there are %d", s->threads, 2 * s->threads, cpus);
    CD_TRY(cd_measure_open(&m, &s->m, err)); /* for its compilers; first of all, it forks */
    CD_TRY(cd_task_registry_new(&s->tasks, err));
    for (size_t i = 0; i < o->task.n; i++) CD_TRY(cd_task_registry_load(s->tasks, o->task.v[i], err));
    CD_TRY(cd_program_new(&s->program, err));
    CD_TRY(read_all(s, err));
    CD_TRY(build_all(s, err));
    CD_TRY(measure_all(s, err));
    return tell(s, err);
}

cdmpp_status cd_main_profile_corun(cd_main_profile *o, cdmpp_err *err) {
    state *s = cd_mem_zalloc(1, sizeof *s);
    if (!s) return CD_FAIL(err, ENOMEM, "pairs");
    s->o = o;
    s->threads = o->threads > 0 ? o->threads : 1;
    s->most = o->limit > 0 ? (size_t)o->limit : USUAL;
    const cdmpp_status st = all(s, err);
    cd_measure_close(s->m);
    for (size_t i = 0; i < s->n; i++) cd_record_program_free(&s->job[i]);
    cd_program_free(s->program);
    cd_task_registry_free(s->tasks);
    cd_arena_free(&s->line);
    cd_arena_free(&s->arena);
    cd_mem_free(s);
    return st;
}
